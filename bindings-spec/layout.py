#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""layout.json: every struct, constant, error and function, as compiled.

    layout.py --library FILE            exit 1 if layout.json or README.md says something else
    layout.py --library FILE --write    write layout.json beside this file

Structs and functions come from the debug information that the compiler wrote (DWARF, read
with pyelftools: structs from all headers, functions from the library), constants from
what it computed.  "since" is kept from the layout.json that is there; what is new gets the
versions of now.
"""

import argparse
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from elftools.elf.elffile import ELFFile  # Debian: python3-pyelftools, for Debian's python3

SPEC = pathlib.Path(__file__).resolve().parent
SHORT = {
    "uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64", "int32_t": "i32",
    "int64_t": "i64", "char": "char", "int": "int", "unsigned int": "unsigned int",
}  # fmt: skip


def text(die, name="DW_AT_name"):
    value = die.attributes.get(name)
    return value.value.decode() if value else ""


def number(die, name):
    value = die.attributes.get(name)
    return value.value if value else 0


def target(die):
    return die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None


def c_type(die):
    """A type as C writes it in front of a name."""
    if die is None:
        return "void"
    kind = die.tag
    if kind == "DW_TAG_pointer_type":
        inner = c_type(target(die))
        return inner + ("*" if inner.endswith("*") else " *")
    if kind in ("DW_TAG_const_type", "DW_TAG_volatile_type"):
        word, inner = kind[7:-5], c_type(target(die))
        return f"{inner}{word}" if inner.endswith("*") else f"{word} {inner}"
    if kind in ("DW_TAG_structure_type", "DW_TAG_union_type"):
        return f"{kind[7:-5].replace('structure', 'struct')} {text(die)}"
    return text(die)


def size_of(die):
    if "DW_AT_byte_size" in die.attributes:
        return number(die, "DW_AT_byte_size")
    if die.tag == "DW_TAG_pointer_type":
        return die.cu["address_size"]
    if die.tag == "DW_TAG_array_type":
        size = size_of(target(die))
        for n in bounds(die):
            size *= n
        return size
    return size_of(target(die))


def bounds(die):
    out = []
    for part in die.iter_children():
        if part.tag == "DW_TAG_subrange_type":
            count = part.attributes.get("DW_AT_count")
            out.append(count.value if count else number(part, "DW_AT_upper_bound") + 1)
    return out


def field_of(die):
    kind = target(die)
    out = {"name": text(die), "offset": number(die, "DW_AT_data_member_location"), "size": size_of(kind)}
    array = []
    while kind.tag == "DW_TAG_array_type":
        array += bounds(kind)
        kind = target(kind)
    name = c_type(kind)
    out["type"] = SHORT.get(name, name)
    if array:
        out["array"] = array
    return out


def source_of(die, dwarf):
    """The path of the header that a DIE is from."""
    at = number(die, "DW_AT_decl_file")
    lines = dwarf.line_program_for_CU(die.cu)
    files = lines["file_entry"]
    entry = files[at if lines["version"] >= 5 else at - 1]
    folder = lines["include_directory"][entry["dir_index"] - (0 if lines["version"] >= 5 else 1)]
    return (folder + b"/" + entry["name"]).decode()


def structs_of(elf, include):
    dwarf = elf.get_dwarf_info()
    shared, api = {}, {}
    for unit in dwarf.iter_CUs():
        for die in unit.get_top_DIE().iter_children():
            if die.tag != "DW_TAG_structure_type" or "DW_AT_declaration" in die.attributes:
                continue
            path = os.path.realpath(source_of(die, dwarf))
            if os.path.dirname(path) != include or not text(die).startswith("nfmeta_"):
                continue
            fields = [field_of(f) for f in die.iter_children() if f.tag == "DW_TAG_member"]
            one = {"size": number(die, "DW_AT_byte_size"), "fields": fields}
            (shared if path.endswith("/abi.h") else api)[text(die)] = one
    return shared, api


def functions_of(elf):
    """Exported functions: prototype, and the node of the symbol map as the version."""
    versions = elf.get_section_by_name(".gnu.version")
    nodes = {}
    for node, names in elf.get_section_by_name(".gnu.version_d").iter_versions():
        nodes[node["vd_ndx"]] = next(names).name
    exported = {}
    for i, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC":
            exported[symbol.name] = nodes[versions.get_symbol(i)["ndx"] & 0x7FFF]
    out = {}
    for unit in elf.get_dwarf_info().iter_CUs():
        for die in unit.get_top_DIE().iter_children():
            name = text(die)
            if die.tag != "DW_TAG_subprogram" or name not in exported or name in out:
                continue
            if "DW_AT_declaration" in die.attributes:
                continue
            parts = [p for p in die.iter_children() if p.tag == "DW_TAG_formal_parameter"]
            out[name] = {
                "since": exported[name].removeprefix("NFMETA_"),
                "returns": c_type(target(die)),
                "parameters": [[c_type(target(p)), text(p)] for p in parts],
            }
    lost = sorted(set(exported) - set(out))
    if lost:
        sys.exit(f"layout.py: no debug information about {', '.join(lost)}: build with -g")
    return dict(sorted(out.items()))


def compiled(cc, source, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "probe.c").write_text(source)
        subprocess.run([*cc, *flags, "-c", "-o", path / "probe.o", path / "probe.c"], check=True)
        return ELFFile(io.BytesIO((path / "probe.o").read_bytes()))


def constants_of(cc, include):
    """Macros of abi.h that are numbers, with their values."""
    flags = ["-std=c11", f"-I{include.parent}"]
    macros = subprocess.run(
        [*cc, *flags, "-dM", "-E", include / "abi.h"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    names = re.findall(r"^#define (NFMETA_[A-Z0-9_]+) +\S", macros, re.M)
    source = "#include <nfmeta/abi.h>\n"
    source += "".join(f"const uint64_t value_{name} = {name};\n" for name in names)
    elf = compiled(cc, source, *flags, "-O0")
    out = {}
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol.name.startswith("value_"):
            at = symbol["st_value"]
            data = elf.get_section(symbol["st_shndx"]).data()[at : at + 8]
            out[symbol.name.removeprefix("value_")] = int.from_bytes(data, "little")
    order = re.findall(r"^#define (NFMETA_[A-Z0-9_]+)\b", (include / "abi.h").read_text(), re.M)
    return {name: out[name] for name in order if name in out}


def is_error(name, value):
    return name.startswith("NFMETA_E") and 2000 < value < 3000


# ---- the text

ROW = re.compile(r"^\| *([0-9]+)(?:–([0-9]+))? *\|(.*)$")


def tables():
    """The tables of README.md with bytes and fields: lists of (first, last, type, field)."""
    table, out = [], []
    for line in (SPEC / "README.md").read_text().splitlines() + [""]:
        row = ROW.match(line)
        cells = [c.strip() for c in row[3].replace("\\|", "/").split("|")] if row else []
        field = next((c for c in cells[:2] if re.fullmatch(r"`[a-z0-9_]+(\[[0-9]\])?`", c)), None)
        if field or (row and "reserved" in cells[:2]):
            kind = cells[0] if field and cells[0] != field else ""
            table.append((int(row[1]), int(row[2] or row[1]), kind, (field or "").strip("`")))
        elif table and not line.startswith("|"):
            out.append(table)
            table = []
    return out


def judge_text(structs, errors):
    """What README.md says otherwise than the compiler, as sentences."""
    bad, told = [], {}
    for table in tables():
        names = {f.split("[")[0] for _, _, _, f in table if f}
        fitting = [s for s in structs if names <= {f["name"] for f in structs[s]["fields"]}]
        fitting = [s for s in fitting if s not in told] or fitting
        if not fitting:
            bad.append(f"a table with {', '.join(sorted(names))}: no struct has these fields")
            continue
        # the one with the fewest others
        name = min(fitting, key=lambda s: len(structs[s]["fields"]))
        told[name] = names
        fields = {f["name"]: f for f in structs[name]["fields"]}
        end = 0
        for first, last, kind, field in table:
            if first != end:
                bad.append(f"{name}: the row of bytes {first}–{last} does not begin at {end}")
            end = last + 1
            if not field:
                continue
            f = fields[field.split("[")[0]]
            at, size = f["offset"], f["size"]
            if "[" in field:
                size //= f["array"][0]
                at += size * int(field.split("[")[1][:-1])
            if (at, at + size - 1) != (first, last):
                bad.append(f"{name}.{field}: bytes {first}–{last} in README.md, compiled {at}–{at + size - 1}")
            word = re.match(r"u[0-9]+", kind)
            if word and word[0] != f["type"]:
                bad.append(f"{name}.{field}: {word[0]} in README.md, compiled {f['type']}")
        if end != structs[name]["size"]:
            bad.append(f"{name}: {end} bytes in README.md, compiled {structs[name]['size']}")
    for name, struct in structs.items():
        wanted = {f["name"] for f in struct["fields"] if not f["name"].startswith("reserved")}
        lost = wanted - told.get(name, set())
        if lost:
            bad.append(f"{name}: README.md does not tell of {', '.join(sorted(lost))}")
    numbers = {name: e["number"] for name, e in errors.items()}
    said = meanings()
    for name in sorted(set(numbers) | set(said)):
        if numbers.get(name) != said.get(name, (None,))[0]:
            bad.append(f"{name}: {said.get(name, ('nothing',))[0]} in README.md, compiled {numbers.get(name)}")
    return bad


def meanings():
    rows = re.findall(r"^\| (20[0-9]+) \| (NFMETA_E[A-Z]+) \| (.*) \|$", (SPEC / "README.md").read_text(), re.M)
    return {name: (int(value), meaning) for value, name, meaning in rows}


# ---- layout.json


def with_since(new, old, now):
    """new with "since" as in old, or now; of structs and of their fields."""
    out = {}
    for name, one in new.items():
        before = old.get(name, {})
        out[name] = {"since": before.get("since", now), **one}
        if "fields" in one:
            fields = {f["name"]: f for f in before.get("fields", [])}
            out[name]["fields"] = [
                {**f, "since": fields.get(f["name"], {}).get("since", now)} for f in one["fields"]
            ]
    return out


def layout(args, old):
    include = args.source / "include" / "nfmeta"
    dpdk = subprocess.run(["pkg-config", "--cflags", "libdpdk"], check=True, stdout=subprocess.PIPE, text=True)
    flags = ["-std=gnu11", "-g", "-gdwarf-4", "-fno-eliminate-unused-debug-types", f"-I{include.parent}"]
    probe = compiled(args.cc, "#include <nfmeta/nfmeta.h>\n", *flags, *dpdk.stdout.split())
    shared, api = structs_of(probe, os.path.realpath(include))
    constants = constants_of(args.cc, include)
    abi = f"{constants['NFMETA_ABI_MAJOR']}.{constants['NFMETA_ABI_MINOR']}"
    said = meanings()
    errors = {
        name: {"number": value, "meaning": said.get(name, (0, ""))[1]}
        for name, value in constants.items()
        if is_error(name, value)
    }
    plain = {n: {"value": v} for n, v in constants.items() if not is_error(n, v)}
    with open(args.library, "rb") as f:
        functions = functions_of(ELFFile(f))
    return {
        "abi": abi,
        "byte_order": "little",
        "structs": with_since(shared, old.get("structs", {}), abi),
        "constants": with_since(plain, old.get("constants", {}), abi),
        "errors": with_since(errors, old.get("errors", {}), abi),
        "api_structs": api,
        "functions": functions,
    }


def dump(value, depth=0):
    """As JSON, one field, constant or function a line."""
    fields = isinstance(value, list) and value and isinstance(value[0], dict)
    if not fields and (depth > 2 or not isinstance(value, dict)) or depth > 3:
        return json.dumps(value, ensure_ascii=False)
    if depth == 2 and "fields" not in value:
        return json.dumps(value, ensure_ascii=False)
    if fields:
        rows, ends = [dump(v, depth + 1) for v in value], "[]"
    else:
        rows, ends = [f"{json.dumps(k)}: {dump(v, depth + 1)}" for k, v in value.items()], "{}"
    pad = "  " * depth
    return ends[0] + "\n" + ",\n".join(f"{pad}  {row}" for row in rows) + f"\n{pad}" + ends[1]


def differences(old, new, where=""):
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(k for k in old if k not in new)]:
            yield from differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif isinstance(old, list) and isinstance(new, list) and where.endswith(".fields"):
        by_name = lambda fields: {f["name"]: {k: v for k, v in f.items() if k != "name"} for f in fields}  # noqa: E731
        yield from differences(by_name(old), by_name(new), where.removesuffix(".fields"))
    elif old != new:
        yield f"{where}: {json.dumps(old)} in layout.json, compiled {json.dumps(new)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libnfmeta.so, built with -g")
    parser.add_argument("--cc", default="cc", type=str.split, help="the compiler (cc)")
    parser.add_argument("--source", default=SPEC.parent, type=pathlib.Path, help="the tree with include/")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()

    path = SPEC / "layout.json"
    old = json.loads(path.read_text()) if path.exists() else {}
    new = layout(args, old)
    bad = judge_text(new["structs"], new["errors"])
    if args.write:
        path.write_text(dump(new) + "\n")
    else:
        bad += differences(old, new)
    for line in bad:
        print(f"layout.py: {line}", file=sys.stderr)
    if not bad:
        fields = sum(len(s["fields"]) for s in new["structs"].values())
        print(f"{len(new['structs'])} structs with {fields} fields, {len(new['constants'])} constants,", end=" ")
        print(f"{len(new['errors'])} errors, {len(new['functions'])} functions")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
