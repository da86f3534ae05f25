# SPDX-License-Identifier: Apache-2.0
"""docs/crds.md, made of crds/*.yaml."""

import json

import yaml

HEAD = """\
# Kinds

<!-- Made by `make docs-update` of crds/; a test compares. Do not edit. -->
The objects that people write, and their status. `kubectl explain profilingtarget.spec.profiles` says the same on a
cluster, one level at a time. `[]` is an element of a list, `{}` a value of a map. Examples are in
[config/samples](../config/samples), reasons in [reasons.md](reasons.md).
"""
# In the order in which people meet them.
FILES = ["profilingtargets", "profilingbackends", "agentpools"]
BOUNDS = [("minimum", "at least {}"), ("maximum", "at most {}"),
          ("minLength", "{} or more characters"), ("maxLength", "at most {} characters"),
          ("minItems", "{} or more elements"), ("maxItems", "at most {} elements"),
          ("minProperties", "{} or more entries"), ("maxProperties", "at most {} entries"),
          ("format", "{}"), ("pattern", "`{}`")]


def _type(field):
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if field.get("x-kubernetes-preserve-unknown-fields") and "type" not in field:
        return "any"
    if "additionalProperties" in field:
        return "map"
    return {"array": "list"}.get(field["type"], field["type"])


def _bounds(field):
    bounds = []
    if "enum" in field:
        bounds.append("one of " + ", ".join(f"`{value}`" for value in field["enum"]))
    bounds += [text.format(field[key]) for key, text in BOUNDS if key in field]
    keys = field.get("x-kubernetes-list-map-keys", [])
    if keys:
        bounds.append("one element for each " + ", ".join(f"`{key}`" for key in keys))
    return "; ".join(bounds)


def _rows(path, field, required):
    """A row for the field, and for all below it."""
    if path:
        default = f"`{json.dumps(field['default'])}`" if "default" in field else "required" if required else ""
        rules = [rule["message"] for rule in field.get("x-kubernetes-validations", [])]
        description = " ".join([field.get("description", "").strip(), *(f"Rule: {rule}." for rule in rules)]).strip()
        cells = [f"`{path}`", _type(field), default, _bounds(field), description]
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
    for name, child in field.get("properties", {}).items():
        yield from _rows(f"{path}.{name}" if path else name, child, name in field.get("required", []))
    if "items" in field:
        yield from _below(f"{path}[]", field["items"])
    if "additionalProperties" in field:
        yield from _below(f"{path}{{}}", field["additionalProperties"])


def _below(path, field):
    """An element: its fields, and a row of its own when it has something to say."""
    if "properties" in field and not _bounds(field):
        for name, child in field["properties"].items():
            yield from _rows(f"{path}.{name}", child, name in field.get("required", []))
    else:
        yield from _rows(path, field, False)


def render(folder):
    page = [HEAD]
    for name in FILES:
        crd = yaml.safe_load((folder / f"{name}.yaml").read_text())["spec"]
        version = crd["versions"][0]
        schema = version["schema"]["openAPIV3Schema"]
        names = crd["names"]
        page += [f"## {names['kind']}",
                 f"`{crd['group']}/{version['name']}`, {crd['scope'].lower()}, short name `{names['shortNames'][0]}`.\n"
                 + " ".join(schema["description"].split())]
        page += [f"Rule: {rule['message']}." for rule in schema.get("x-kubernetes-validations", [])]
        for part in ("spec", "status"):
            page += ["", f"### {names['kind']} {part}",
                     "| field | type | default | bounds | what |", "|---|---|---|---|---|"]
            page += _rows("", schema["properties"][part], False)
            rules = schema["properties"][part].get("x-kubernetes-validations", [])
            page += [""] * bool(rules) + [f"- Rule: {rule['message']}." for rule in rules]
        page.append("")
    return "\n".join(page)
