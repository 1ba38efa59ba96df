// What OpenCode has for hooks: this asks `tenure hook` at the same places as the other agents do.
// Made by `tenure setup opencode`; it needs no package.
import { spawn, spawnSync } from "node:child_process"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const COMMAND = ["tenure", "hook", "--from", "opencode"]

export const Tenure = async ({ client, directory }) => {
  // Never fails and never throws: without an answer the agent goes on.
  const ask = (event, more = {}) =>
    new Promise((resolve) => {
      const child = spawn(COMMAND[0], COMMAND.slice(1), { cwd: directory, stdio: ["pipe", "pipe", "ignore"], timeout: 5000 })
      let said = ""
      child.on("error", () => resolve({}))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (chunk) => (said += chunk))
      child.on("close", () => {
        try {
          resolve(JSON.parse(said || "{}"))
        } catch {
          resolve({})
        }
      })
      child.stdin.end(JSON.stringify(payload(event, more)))
    })
  // OpenCode names no transcript: what its messages used goes to a private file, which the hook reads.
  let transcript = ""
  const payload = (event, more) => ({ hook_event_name: event, cwd: directory, ...(transcript && { transcript_path: transcript }), ...more })
  const note = (info) => {
    if (info?.role !== "assistant" || !(info.tokens?.input || info.tokens?.output)) return
    try {
      transcript ||= join(mkdtempSync(join(tmpdir(), "tenure-")), "usage.jsonl")
      const { id, sessionID, modelID, time, tokens } = info
      appendFileSync(transcript, JSON.stringify({ type: "message.updated", info: { id, sessionID, modelID, time, tokens } }) + "\n")
    } catch {
      // No room: the usage is not booked.
    }
  }
  const primed = new Map()
  const EDITS = ["edit", "write", "patch", "multiedit", "apply_patch"]

  return {
    // The process ends: nothing may still be under way then.
    dispose: async () => {
      const input = JSON.stringify(payload("SessionEnd", {}))
      spawnSync(COMMAND[0], COMMAND.slice(1), { cwd: directory, input, stdio: ["pipe", "ignore", "ignore"], timeout: 5000 })
      if (transcript) rmSync(dirname(transcript), { recursive: true, force: true })
    },
    "experimental.chat.system.transform": async (input, output) => {
      const session = input.sessionID ?? ""
      if (!primed.has(session)) {
        const said = await ask("SessionStart", { session_id: session, source: "startup" })
        primed.set(session, said.hookSpecificOutput?.additionalContext ?? "")
      }
      // The same text each time, so that the provider's cache holds.
      if (primed.get(session)) output.system.push(primed.get(session))
    },
    "tool.execute.before": async (input, output) => {
      if (!EDITS.includes(input.tool)) return
      const said = await ask("PreToolUse", {
        session_id: input.sessionID, tool_name: input.tool, tool_use_id: input.callID, tool_input: output.args,
      })
      const denied = said.hookSpecificOutput
      if (denied?.permissionDecision === "deny") throw new Error(denied.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      const said = await ask("PostToolUse", { session_id: input.sessionID, tool_name: input.tool, tool_use_id: input.callID })
      const told = said.hookSpecificOutput?.additionalContext
      if (!told) return
      if (typeof output.output === "string") output.output += "\n\n" + told
      else if (Array.isArray(output.content)) output.content.push({ type: "text", text: told })
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? ""
      if (event.type === "message.updated") note(event.properties?.info)
      if (event.type === "session.compacted") primed.delete(session)
      if (event.type !== "session.idle") return
      const said = await ask("Stop", { session_id: session })
      if (said.decision !== "block") return
      try {
        await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text: said.reason }] } })
      } catch {
        // An older version, or one that is about to end: it stops, as it was going to.
      }
    },
  }
}
