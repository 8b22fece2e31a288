// A request as Python, with the standard library alone.
function python(request) {
  const text = (value) => JSON.stringify(String(value));
  const lines = ["import json, os, urllib.request", "", `request = urllib.request.Request(${text(request.get("url"))}, method=${text(request.get("method"))})`];
  const headers = request.get("headers");
  if (!headers?.get("Authorization")) lines.push("request.add_header(\"Authorization\", f\"Bearer {os.environ['MENUWATCH_TOKEN']}\")");
  headers?.forEach((value, name) => lines.push(`request.add_header(${text(name)}, ${text(value)})`));
  const body = request.get("body");
  if (body) lines.push(`request.data = ${text(typeof body === "string" ? body : JSON.stringify(body))}.encode()`);
  return [...lines, "print(json.load(urllib.request.urlopen(request)))"].join("\n");
}

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  validatorUrl: null,
  tryItOutEnabled: true,
  requestSnippetsEnabled: true,
  requestSnippets: { generators: { curl_bash: { title: 'curl', syntax: 'bash' }, python: { title: 'Python', syntax: 'python' } } },
  // The examples of the description name this server, whatever its address is.
  responseInterceptor: (response) => {
    if (response.url?.endsWith("/openapi.json")) response.text = response.text?.replaceAll("http://127.0.0.1:8640", new URL(".", location.href).href.slice(0, -1));
    return response;
  },
  plugins: [() => ({ fn: { requestSnippetGenerator_python: python } })],
});
