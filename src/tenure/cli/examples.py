"""Two examples for each verb, which end its `-h`. Loaded for help alone.

A test parses each of them, so that none names an option that does not exist.
"""

from __future__ import annotations

_TABLE = """
claim | claim | claim B-003 --lease 2h
next | next | next --track B --json
results | results B-003 | results B-003 --kept
start | start | start B-003@1
progress | progress "tests pass" --percent 60 | progress B-003 "half of it" --done-in 20m
checkpoint save | checkpoint save --next-action "write the tests" | checkpoint save B-003 --data @state.json
checkpoint show | checkpoint show B-003 | checkpoint show --budget 400
artifact put | artifact put B-003 report.md | artifact put report.md --name reports/final.md
artifact get | artifact get B-003 report.md | artifact get B-003 report.md --into out
artifact list | artifact list B-003 | artifact list B-003 --json
done | done -s "what you did" | done B-003@2 --result @result.json
fail | fail -m "the API is down" --class upstream_timeout | fail --all -y -m "the machine restarts"
release | release | release B-003 -m "somebody else knows this better"
renew | renew | renew B-003 --lease 1h
ask | ask "Which database?" | ask B-003 "May I change the schema?"
spawn | spawn "Write the tests" "Write the docs" | spawn --tasks @subtasks.json --wait
run | run --agent claude -n 2 | run --agent codex --until-empty
whoami | whoami | whoami --json
audit on | audit on | audit on --project shop
audit head | audit head | audit head --all --json
audit verify | audit verify --head 12:HEAD | audit verify log.jsonl
audit export | audit export log.jsonl | audit export log.jsonl --project shop
audit attest | audit attest | audit attest --project shop
worktree add | worktree add | worktree add B-003
worktree list | worktree list | worktree list --json
worktree remove | worktree remove B-003 | worktree remove --ended
land | land | land B-003 --onto main
add | add "Write the parser" -p high -d @parser.md | add "Test it" --after B-001 --ref task:B-001:output
link | link B-002 B-001 | link B-002 B-001 --on-failure cancel
unlink | unlink B-002 B-001 | unlink B-002 B-001 --json
publish | publish B-003 | publish --dag DAG
plan check | plan check plan.yaml | plan check plan.yaml --json
plan apply | plan apply plan.yaml | plan apply plan.yaml --dry-run
plan graph | plan graph | plan graph plan.yaml --format mermaid
plan export | plan export | plan export --all -o plan.yaml
schedule add | schedule add nightly "0 3 * * *" "Run all tests" | schedule add triage @daily "Triage of {tick.date}"
schedule list | schedule list | schedule list --json
schedule show | schedule show nightly | schedule show nightly --json
schedule pause | schedule pause nightly | schedule pause nightly --json
schedule resume | schedule resume nightly | schedule resume nightly --json
schedule remove | schedule remove nightly | schedule remove nightly --json
schedule run | schedule run nightly | schedule run nightly --json
trigger add | trigger add review "Review {event.key}" --on task.completed | trigger add push "Build it" --github
trigger list | trigger list | trigger list --json
trigger show | trigger show review | trigger show review --json
trigger test | trigger test review | trigger test push --body @push.json
trigger pause | trigger pause review | trigger pause review --json
trigger resume | trigger resume review | trigger resume review --json
trigger remove | trigger remove review | trigger remove review --json
trigger rotate | trigger rotate push | trigger rotate push --json
trigger watch | trigger watch --threshold 0.5 | trigger watch --off
emit | emit release.cut | emit release.cut --data '{"version": "1.2"}'
import | import beads .beads | import task-master tasks.json --dry-run
status | status | status --all-projects
watch | watch | watch -r 5
ready | ready | ready --track B
list | list -s ready -s running | list --order -priority --limit 10
show | show B-003 | show B-003 --json
why | why B-003 | why B-003 --json
history | history B-003 | history B-003 --json
log | log -n 20 --task B-003 | log -f --level warning
logs | logs B-003 | logs -f B-003
wait | wait B-001 B-002 | wait --dag DAG --timeout 10m
budget list | budget list | budget list task
budget show | budget show | budget show agent:ann
budget alerts | budget alerts | budget alerts --json
budget projection | budget projection | budget projection dag:DAG
usage | usage --by model | usage --by track --limit 5
usage confirm | usage confirm B-003 | usage confirm B-003 --generation 2
usage reject | usage reject B-003 | usage reject B-003 --generation 2
usage add | usage add --model claude-sonnet-4-5 --in 12000 --out 800 | usage add B-003 --model gpt-5 --cost 0.42
model list | model list | model list --json
model savings | model savings | model savings --json
model estimates | model estimates | model estimates --json
model routing | model routing on | model routing off
todo | todo | todo --json
dlq | dlq | dlq --resolved
edit | edit B-003 -p high | edit B-003 -d @new.md --supersede
note | note B-003 "the token expires hourly" | note B-003 @findings.md
answer | answer B-003 "PostgreSQL" | answer B-003 @decision.md
pause | pause B-003 -m "wait for the release" | pause -s ready --track B --dry-run
resume | resume B-003 | resume B-003 --budget
cancel | cancel B-003 -m "no longer needed" | cancel --tag old --dry-run
retry | retry B-003 -m "the server is back" | retry -s dead-letter --dry-run
reset | reset B-003 | reset B-003 --cascade
archive | archive B-003 | archive -s completed --dry-run
assign | assign B-003 ann | assign B-003 ann --for 10m
reassign | reassign B-003 bo | reassign B-003 bo --for 10m
approve | approve B-003 | approve B-003 -m "good"
reject | reject B-003 -m "no tests" | reject B-003 -m @review.md
adopt | adopt B-003 | adopt B-003 --supersede
recover | recover B-003 | recover B-003 -m "the terminal is gone"
abort | abort B-003 | abort B-003 -m "it hangs"
undo | undo | undo COMMAND
budget set | budget set --usd 20 --period day | budget set agent:ann --tokens 1000000
budget move | budget move project dag:DAG 5 | budget move dag:DAG project 2.50
budget remove | budget remove agent:ann | budget remove
stop | stop -m "deploying" | stop --by ann
go | go | go --track B
join | join -n ann -c python | join -n bo --track B --json
leave | leave | leave --force
agents | agents | agents --json
agent list | agent list | agent list --json
agent show | agent show ann | agent show ann --json
agent drain | agent drain ann | agent drain ann --json
agent terminate | agent terminate ann -m "repeats itself" | agent terminate ann --now
agent resume | agent resume ann | agent resume ann --json
msg | msg "The build is red" --to @track:B | msg "Done with B-003" --to ann
inbox | inbox --unread | inbox --from ann --keep
reserve | reserve "src/api/**" --with B-003 | reserve port:8080 --lease 30m
unreserve | unreserve RECEIPT | unreserve RECEIPT --json
locks | locks | locks --json
lead | lead | lead --term 3 --step-down
session | session | session SESSION --json
webhook set | webhook set ci https://ci.example.org/hook | webhook set ci https://ci.example.org/h --on dag.*
webhook list | webhook list | webhook list --json
webhook show | webhook show ci | webhook show ci --json
webhook test | webhook test ci | webhook test ci --json
webhook replay | webhook replay ci | webhook replay ci --json
webhook log | webhook log ci | webhook log ci --json
webhook pause | webhook pause ci | webhook pause ci --json
webhook resume | webhook resume ci | webhook resume ci --json
webhook remove | webhook remove ci | webhook remove ci --json
webhook rotate | webhook rotate ci | webhook rotate ci --json
relay list | relay list | relay list --json
relay pause | relay pause nats | relay pause nats --json
relay resume | relay resume nats | relay resume nats --json
relay rewind | relay rewind nats --to 0 | relay rewind nats --to 1200
relay remove | relay remove nats | relay remove nats --json
notify test | notify test | notify test --json
init | init | init --agents all
setup | setup claude codex | setup --check
prime | prime | prime --json
hook | hook SessionStart | hook --from claude
trust | trust | trust --list
config | config lease | config tasks.priority high
daemon | daemon | daemon --every 1
db upgrade | db upgrade | db upgrade --json
db backup | db backup backup.db | db backup /var/backups/tenure.db
db restore | db restore backup.db | db restore backup.db --to .tenure/tenure.db
db copy | db copy .tenure/tenure.db postgresql://db/tenure | db copy a.db b.db --no-verify
db archive | db archive --dry-run | db archive --older-than 30d
db check | db check | db check --json
db rls | db rls on --role tenure_app | db rls check
db clock | db clock | db clock --accept
db new-epoch | db new-epoch -m "restored a snapshot" | db new-epoch -m "after a rollback" --json
secret seal | secret seal | secret seal --json
secret rotate | secret rotate | secret rotate --master
key create | key create ci --role agent --only web | key create laptop --role member --expires 90d
key list | key list | key list --all
key rotate | key rotate ci | key rotate ci --grace 0
key revoke | key revoke ci | key revoke ci --json
audit verify-access | audit verify-access access.log | audit verify-access access.log.1 access.log --head 1200:9f3c
tenant add | tenant add acme | tenant add acme --tier enterprise
tenant list | tenant list | tenant list --all
tenant show | tenant show acme | tenant show acme --json
tenant limits | tenant limits acme | tenant limits acme max_concurrent_claims=500
tenant move | tenant move acme --to us --store - | tenant move acme --call-off
tenant close | tenant close acme -m "moved away" | tenant close acme --json
tenant reopen | tenant reopen acme | tenant reopen acme --json
member invite | member invite ann --role admin | member invite bo --only web
member list | member list | member list --tenant acme --all
member role | member role ann viewer | member role bo --only web --only api
member remove | member remove ann | member remove ann --json
completion | completion bash | completion zsh
doctor | doctor | doctor --json
serve | serve | serve --host 0.0.0.0 --port 8080
mcp | mcp | mcp --project web
demo | demo | demo --json
forecast | forecast | forecast -n 4 --json
limits | limits | limits --json
limits set | limits set max_concurrent_claims=20 | limits set max_lease=7200 min_lease=default
project list | project list | project list --json
project show | project show | project show --json
project set | project set --router on | project set --lead off
project reorder | project reorder | project reorder --json
track list | track list | track list --json
track define | track define B "Back end" | track define B "Back end" --max-agents 2
track assign | track assign B ann | track assign B ann --json
track release | track release B ann | track release B ann --json
pool set | pool set coders --agent claude --size 3 | pool set coders --size 5
pool list | pool list | pool list --json
pool show | pool show coders | pool show coders --json
pool pause | pool pause coders | pool pause coders -m "deploying"
pool resume | pool resume coders | pool resume coders --json
pool remove | pool remove coders | pool remove coders --json
spawn list | spawn list | spawn list --json
gateway | gateway | gateway --listen 0.0.0.0:7421
"""

EXAMPLES: dict[str, tuple[str, ...]] = {
    name.strip(): tuple(f"tenure {one.strip()}" for one in examples)
    for name, *examples in (line.split(" | ") for line in _TABLE.strip().splitlines())
}


def examples_of(verb: str) -> str | None:
    found = EXAMPLES.get(verb)
    return "examples:\n" + "\n".join(f"  {one}" for one in found) if found else None
