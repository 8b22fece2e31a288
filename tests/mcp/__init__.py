"""The MCP server, asked by the SDK's client; answers are compared with what was worked out without the code under test."""
