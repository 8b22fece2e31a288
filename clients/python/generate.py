"""Generates models and methods of the client from the description of the API.

python clients/python/generate.py            writes them
python clients/python/generate.py --check    exit code 1 if they are out of date
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DESCRIPTION = HERE.parents[1] / "openapi.json"
PACKAGE = HERE / "src" / "menuwatch_client"
WIDTH = 118

Json = Mapping[str, Any]

SKIPPED = frozenset({"stream_events"})
"""Operations without a method: an endless stream."""
HEADERS = {"If-Match": "if_match", "Idempotency-Key": "idempotency_key"}
"""Headers that a caller may set, by their arguments."""


class Generator:
    """The source of the generated modules, by file name."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._schemas: Json = document["components"]["schemas"]
        self._operations = list(self._every_operation())
        self._inputs = self._reachable(operation.get("requestBody", {}) for *_, operation in self._operations)
        self._outputs = self._reachable(operation["responses"] for *_, operation in self._operations)
        self._tagged = self._tags()
        self._pages: dict[str, str] = {}

    def files(self) -> dict[str, str]:
        """The text of each file."""
        methods = {False: self._methods(False), True: self._methods(True)}
        return {
            "models.py": self._models(),
            "sync_methods.py": methods[False],
            "async_methods.py": methods[True],
        }

    def _every_operation(self) -> Iterator[tuple[str, str, Any]]:
        for path, operations in self._document["paths"].items():
            for method, operation in operations.items():
                if operation["operationId"] not in SKIPPED:
                    yield method.upper(), path, operation

    def _reachable(self, parts: Any) -> set[str]:
        """Names of the components that these parts refer to, directly or through others."""
        found: set[str] = set()
        left = [name for part in parts for name in _references(part)]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += _references(self._schemas[name])
        return found

    def _tags(self) -> dict[str, tuple[str, str]]:
        """Tag (member, value) of components that occur beside others in one list: the member has a single value in each."""
        tags = {}
        for *_, operation in self._operations:
            for options in _unions(operation["responses"]):
                for name in options:
                    for member, schema in self._schemas[name]["properties"].items():
                        if len(schema.get("enum", ())) == 1:
                            tags[name] = (member, schema["enum"][0])
                            break
        return tags

    # Types

    def _is_enum(self, name: str) -> bool:
        return "enum" in self._schemas[name]

    def _type(self, schema: Json, *, sent: bool, module: str = "") -> str:
        """The annotation of a schema. Words of a fixed set are plain text in responses: a newer server may have more of them."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            if self._is_enum(name):
                return module + name if sent else "str"
            return module + name
        if "anyOf" in schema:
            options = [self._type(one, sent=sent, module=module) for one in schema["anyOf"] if one != {"type": "null"}]
            if sorted(options) in (["float", "str"], ["Decimal", "str"]):
                options = ["Decimal", "float"]
            if any(one == {"type": "null"} for one in schema["anyOf"]):
                options.append("None")
            return " | ".join(dict.fromkeys(options))
        if "enum" in schema:
            if not all(isinstance(value, str) for value in schema["enum"]):
                return "int"
            return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]" if sent else "str"
        kind = schema.get("type")
        if kind == "array":
            inner = self._type(schema.get("items", {}), sent=sent, module=module)
            return f"list[{inner}]"
        if kind == "object":
            more = schema.get("additionalProperties")
            inner = self._type(more, sent=sent, module=module) if isinstance(more, Mapping) and more else "Any"
            return f"dict[str, {inner}]"
        if kind == "string":
            return {"date-time": "dt.datetime", "date": "dt.date"}.get(schema.get("format", ""), "str")
        if kind == "number":
            return "Decimal" if schema.get("format") == "decimal" else "float"
        return {"integer": "int", "boolean": "bool", "null": "None"}.get(kind or "", "Any")

    # Models

    def _models(self) -> str:
        names = sorted((self._inputs | self._outputs | {"ProblemDetails"}) & set(self._schemas))
        used = self._words()
        parts = [self._enum(name) for name in sorted(used)]
        parts += [self._struct(name) for name in names if not self._is_enum(name)]
        head = (
            '"""Shapes of the API."""\n\n# Generated by generate.py from openapi.json: do not edit.\n\n'
            "from __future__ import annotations\n\nimport datetime as dt\nfrom decimal import Decimal\n"
            "from typing import Any, Literal\n\nfrom msgspec import UNSET, Struct, UnsetType, field\n"
        )
        return head + "".join(f"\n\n{part}" for part in parts)

    def _words(self) -> set[str]:
        """Enumerations that requests use."""
        used = {name for name in self._inputs if self._is_enum(name)}
        for *_, operation in self._operations:
            used |= {name for parameter in operation.get("parameters", ()) for name in _references(parameter)}
        return used

    def _enum(self, name: str) -> str:
        values = ", ".join(json.dumps(value) for value in self._schemas[name]["enum"])
        line = f"{name} = Literal[{values}]"
        if len(line) > WIDTH:
            wrapped = textwrap.fill(values + ",", WIDTH, initial_indent="    ", subsequent_indent="    ")
            line = f"{name} = Literal[\n{wrapped}\n]"
        text = _docstring(self._schemas[name].get("description", ""), "")
        return line + "\n" + text

    def _struct(self, name: str) -> str:
        schema = self._schemas[name]
        sent = name in self._inputs
        tag = self._tagged.get(name)
        options = "kw_only=True" + (", omit_defaults=True" if sent else ", frozen=True")
        if tag is not None:
            options += f", tag_field={json.dumps(tag[0])}, tag={json.dumps(tag[1])}"
        lines = [
            f"class {name}(Struct, {options}):\n",
            _docstring(schema.get("description", name), "    ", always=True),
        ]
        members = self._members(schema, sent=sent, without=tag[0] if tag else None)
        return "".join([*lines, "\n" if members else "", members])

    def _members(self, schema: Json, *, sent: bool, without: str | None = None) -> str:
        text = ""
        required = set(schema.get("required", ()))
        for member, inner in schema.get("properties", {}).items():
            if member == without:
                continue
            kind = self._type(inner, sent=sent)
            attribute = _identifier(member)
            default: str | None = None
            if member not in required:
                if sent:
                    kind, default = f"{kind} | UnsetType", "UNSET"
                else:
                    kind = kind if "None" in kind.split(" | ") or kind == "Any" else f"{kind} | None"
                    default = "None"
            line = f"    {attribute}: {kind}"
            if attribute != member:
                line += f" = field(name={json.dumps(member)}" + (f", default={default})" if default else ")")
            elif default is not None:
                line += f" = {default}"
            text += line + "\n" + _docstring(inner.get("description", ""), "    ")
        return text

    def _page(self, operation: str, schema: Json) -> tuple[str, str]:
        """Types of an item and of a page of a list."""
        items = schema["properties"]["items"]["items"]
        item = self._type(items, sent=False, module="models.")
        more = {name: inner for name, inner in schema["properties"].items() if name not in ("items", "next")}
        if not more:
            return item, f"Page[{item}]"
        # Lists with the same members beside their items share a page.
        members = {"properties": more, "required": [name for name in more if name in schema["required"]]}
        text = self._members(members, sent=False)
        known = {body: name for name, body in self._pages.items()}
        name = known.get(text)
        if name is None:
            name = "".join(word.title() for word in operation.split("_")) + "Page"
            self._pages[name] = text
        return item, f"pages.{name}[{item}]"

    # Methods

    def _methods(self, asynchronous: bool) -> str:
        kind = "Async" if asynchronous else "Sync"
        body = "".join(
            "\n" + self._method(method, path, operation, asynchronous) for method, path, operation in self._operations
        )
        head = (
            f'"""The methods of `{"AsyncClient" if asynchronous else "Client"}`: one for each operation of the API."""\n\n'
            "# Generated by generate.py from openapi.json: do not edit.\n\n"
            "from __future__ import annotations\n\nimport datetime as dt\nfrom collections.abc import Sequence\n"
            "from decimal import Decimal\nfrom typing import Any, Literal, cast\n\n"
            "from menuwatch_client import models\n"
            "from menuwatch_client import list_pages as pages\n"
            "from menuwatch_client.core import Call, new_key, path_of\n"
            f"from menuwatch_client.pages import {'AsyncPages' if asynchronous else 'Pages'}, Page\n"
            f"from menuwatch_client.transport import {kind}Transport\n"
        )
        return f'{head}\n\nclass {kind}Methods({kind}Transport):\n    """One method for each operation of the API."""\n{body}'

    def _method(self, method: str, path: str, operation: Json, asynchronous: bool) -> str:
        name = operation["operationId"]
        status, response = next(iter(operation["responses"].items()))
        schema = response.get("content", {}).get("application/json", {}).get("schema")
        is_list = schema is not None and {"items", "next"} <= set(schema.get("properties", ()))
        parameters = [one for one in operation.get("parameters", ()) if one["in"] != "cookie"]
        positional: list[str] = []
        keywords: list[str] = []
        query: list[str] = []
        headers: list[str] = []
        about: list[tuple[str, str]] = []
        for parameter in parameters:
            place, raw = parameter["in"], parameter["name"]
            inner, attribute = parameter["schema"], HEADERS.get(raw, _identifier(raw.replace("-", "_").lower()))
            if place == "header" and raw not in HEADERS:
                continue
            if is_list and raw == "fields":
                continue
            kind = self._type(inner, sent=True, module="models.").replace("list[", "Sequence[")
            default = ""
            if is_list and raw == "limit":
                kind, default = "int", f" = {int(inner['maximum'])}"
            elif not parameter.get("required"):
                kind, default = (kind if "None" in kind.split(" | ") else f"{kind} | None"), " = None"
            (positional if place == "path" else keywords).append(f"{attribute}: {kind}{default}")
            if place == "query":
                query.append(f"{json.dumps(raw)}: {attribute}")
            elif place == "header":
                value = f"new_key({attribute})" if raw == "Idempotency-Key" else attribute
                headers.append(f"{json.dumps(raw)}: {value}")
            if raw not in HEADERS and "description" in parameter:
                about.append((attribute, parameter["description"]))
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if body is not None:
            kind = self._type(body, sent=True, module="models.")
            optional = not operation["requestBody"].get("required")
            kind = kind if not optional or "None" in kind.split(" | ") else f"{kind} | None"
            positional.append(f"body: {kind}" + (" = None" if optional else ""))
        if is_list:
            item, page = self._page(name, schema)
            value, returned = f"{item}, {page}", page
            annotation = f"{'AsyncPages' if asynchronous else 'Pages'}[{item}, {page}]"
        else:
            returned = annotation = self._returned(status, response)
        signature = ["self", *positional, *(["*", *keywords] if keywords else [])]
        wait = asynchronous and not is_list
        line = f"    {'async ' if wait else ''}def {name}({', '.join(signature)}) -> {annotation}:\n"
        if len(line) > WIDTH:
            inside = "".join(f"        {one},\n" for one in signature)
            line = f"    {'async ' if wait else ''}def {name}(\n{inside}    ) -> {annotation}:\n"
        call = self._call(method, path, parameters, returned, query, headers, body is not None)
        text = line + _docstring(_about(operation), " " * 8, arguments=about)
        text += f"        call = {call}\n"
        if is_list:
            # Types that only an annotation can express are passed on as values.
            text += f"        return {'AsyncPages' if asynchronous else 'Pages'}(self, call, {value})\n"
        elif returned == "None":
            text += f"        {'await ' if asynchronous else ''}self.call(call)\n"
        else:
            quoted = json.dumps(annotation)
            text += f"        return cast({quoted}, {'await ' if asynchronous else ''}self.call(call))\n"
        return text

    def _returned(self, status: str, response: Json) -> str:
        content = response.get("content", {})
        if status == "204" or not content:
            return "None"
        if "application/json" not in content:
            return "bytes"
        return self._type(content["application/json"]["schema"], sent=False, module="models.")

    @staticmethod
    def _call(
        method: str, path: str, parameters: Any, returned: str, query: list[str], headers: list[str], has_body: bool
    ) -> str:
        template = re.sub(r"\{(\w+)(?::\w+)?\}", r"{\1}", path)
        names = re.findall(r"\{(\w+)\}", template)
        place = json.dumps(template)
        if names:
            place = f"path_of({place}, {', '.join(f'{name}={_identifier(name)}' for name in names)})"
        members = [f"method={json.dumps(method)}", f"path={place}", f"returns={returned}"]
        if query:
            members.append(_mapping("query", query))
        if headers:
            members.append(f"headers={{{', '.join(headers)}}}")
        if has_body:
            members.append("body=body")
        line = f"Call({', '.join(members)})"
        if len(line) + 16 > WIDTH:
            line = "Call(\n" + "".join(f"            {one},\n" for one in members) + "        )"
        return line

    def list_pages(self) -> str:
        """Pages with further members than items and a cursor."""
        text = (
            '"""Pages of lists that have further members."""\n\n# Generated by generate.py from openapi.json: do not edit.\n\n'
            "from __future__ import annotations\n\nimport datetime as dt\nfrom typing import TypeVar\n\n"
        )
        words = {
            word
            for body in self._pages.values()
            for word in re.findall(r"\w+", re.sub(r'""".*?"""', "", body, flags=re.DOTALL))
        }
        shapes = ", ".join(sorted(words & set(self._schemas)))
        text += (
            f"from menuwatch_client.models import {shapes}\nfrom menuwatch_client.pages import Page\n\n"
            'T = TypeVar("T")\n'
        )
        for name, body in sorted(self._pages.items()):
            text += f'\n\nclass {name}(Page[T], kw_only=True, frozen=True):\n    """A page with further members."""\n\n{body}'
        return text


def _references(part: Any) -> list[str]:
    if isinstance(part, Mapping):
        own = [part["$ref"].rsplit("/", 1)[1]] if isinstance(part.get("$ref"), str) else []
        return own + [name for value in part.values() for name in _references(value)]
    return [name for value in part for name in _references(value)] if isinstance(part, list) else []


def _unions(part: Any) -> Iterator[list[str]]:
    """Names of the components of each union of several."""
    if isinstance(part, Mapping):
        options = [one["$ref"].rsplit("/", 1)[1] for one in part.get("anyOf", ()) if "$ref" in one]
        if len(options) > 1:
            yield options
        for value in part.values():
            yield from _unions(value)
    elif isinstance(part, list):
        for value in part:
            yield from _unions(value)


def _mapping(name: str, pairs: list[str]) -> str:
    line = f"{name}={{{', '.join(pairs)}}}"
    if len(line) + 12 <= WIDTH:
        return line
    # Lines end between pairs only.
    whole = ", ".join(pair.replace(" ", "\0") for pair in pairs)
    inner = textwrap.fill(whole + ",", WIDTH, initial_indent=" " * 16, subsequent_indent=" " * 16)
    return f"{name}={{\n{inner}\n            }}".replace("\0", " ")


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in ("self", "body") else name


def _about(operation: Json) -> str:
    return "\n\n".join(
        [f"{operation['summary']}.", *([operation["description"]] if "description" in operation else [])]
    )


_SENTENCE = re.compile(r"""(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z0-9`"'(*])""")


def _docstring(text: str, indent: str, *, always: bool = False, arguments: Sequence[tuple[str, str]] = ()) -> str:
    """The text as a docstring; nothing for no text. What is longer than a line has its first sentence in a paragraph of its own, from
    the first line on. Where lines of the text end has no meaning, blank lines do."""
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    paragraphs = [" ".join(one.split()) for one in re.split(r"\n\s*\n", text.strip())]
    if paragraphs == [""] and not always:
        return ""
    if paragraphs[-1].endswith('"'):
        paragraphs[-1] += " "
    width = WIDTH - len(indent)
    if len(paragraphs) == 1 and len(paragraphs[0]) + 6 <= width and not arguments:
        return f'{indent}"""{paragraphs[0]}"""\n'
    first, *others = paragraphs
    blocks = [_wrapped(part, width) for part in (*_SENTENCE.split(f'"""{first}', maxsplit=1), *others)]
    if arguments:
        lines = [line for name, what in arguments for line in _argument(name, what, width)]
        blocks.append(["Args:", *lines])
    inner = "\n\n".join("\n".join(f"{indent}{line}" for line in block) for block in blocks)
    return f'{inner}\n{indent}"""\n'


def _argument(name: str, what: str, width: int) -> list[str]:
    text = what.replace("\\", "\\\\").replace('"""', "'''")
    return _wrapped(f"    {name}: {' '.join(text.split())}", width, hanging=8)


def _wrapped(text: str, width: int, *, hanging: int = 0) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=" " * hanging, break_long_words=False, break_on_hyphens=False)


def generated(document: Json) -> dict[Path, str]:
    """The text of every generated file."""
    generator = Generator(document)
    files = generator.files()
    files["list_pages.py"] = generator.list_pages()
    return {PACKAGE / name: text for name, text in files.items()}


def main() -> int:
    """Writes the files, or compares them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare; exit code 1 if a file is out of date")
    only_check = parser.parse_args().check
    old = []
    for path, text in generated(json.loads(DESCRIPTION.read_text(encoding="utf-8"))).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            old.append(path.name)
            if not only_check:
                path.write_text(text, encoding="utf-8")
    if old:
        print(f"{'out of date' if only_check else 'wrote'}: {', '.join(old)}")
    return int(only_check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
