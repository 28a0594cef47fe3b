// A TypeScript SDK client: lists, calls one tool, prints the result as JSON.
// usage: node ts_client.mjs v1|v2|v2-auto NODE_MODULES TOOL ARGUMENTS COMMAND [ARG...]
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [generation, modules, tool, args, command, ...rest] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(modules, "@modelcontextprotocol", path)).href);

const v1 = generation === "v1";
const { Client } = await load(v1 ? "sdk/dist/esm/client/index.js" : "client/dist/index.mjs");
const { StdioClientTransport } = await load(
  v1 ? "sdk/dist/esm/client/stdio.js" : "client/dist/stdio.mjs",
);
const options = generation === "v2-auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: `typescript-${generation}`, version: "1" }, options);
await client.connect(new StdioClientTransport({ command, args: rest, env: process.env }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ tools: tools.map((t) => t.name), result }));
await client.close();
