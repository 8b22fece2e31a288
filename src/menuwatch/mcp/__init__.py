"""The MCP server: tools and resources with which AI clients read what Menuwatch knows (Model Context Protocol).

- `tool`: a tool: its input and answer, caps, cursors, and errors. `tools/` has them by topic; each calls the function that the
  API and the command line call.
- `answer`: freshness, coverage and limits, which every answer carries.
- `resources`: the data dictionary and the glossary of measures.
- `server`: the protocol, by the SDK. The only module that imports it: that takes as long as the start of a command.
- `http`: `/mcp` of the server: tokens, origins, and the import at the first request.

Everything is read in a transaction that is READ ONLY: no tool can change anything.
"""
