"""Stand-in libraries: let the CUDA build of torch load on a machine without CUDA.

PyPI has torch for CUDA only, and its libraries name some 3 GB of NVIDIA libraries that a CPU run never calls. For each of
these names that is absent, one shared object is made in which every function that torch asks for returns 1: an error in each of
those interfaces. What torch needs is read from its own libraries with readelf.
"""
import collections
import pathlib
import re
import subprocess
import tempfile

# Of the C library, the compiler and torch itself: present on every machine or in the wheel.
SYSTEM = re.compile(r"^(ld-linux|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|gomp)\.so)")
NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
SYMBOL = re.compile(r"^\s*\d+:\s+\S+\s+\d+\s+\S+\s+(\S+)\s+\S+\s+(\S+)\s+(\S+)(?:\s+\(\d+\))?\s*$")
VERSION_FILE = re.compile(r"Version: \d+\s+File: (\S+)")
VERSION_NAME = re.compile(r"Name: (\S+)\s+Flags:")


def readelf(option, library):
    return subprocess.run(["readelf", "-W", option, str(library)], capture_output=True, text=True, check=True).stdout


def needed(library):
    return NEEDED.findall(readelf("-d", library))


def symbols(library):
    """(name, version or "", defined) of the dynamic symbols that bind by name."""
    for line in readelf("--dyn-syms", library).splitlines():
        found = SYMBOL.match(line)
        if not found or found.group(1) not in ("GLOBAL", "WEAK"):
            continue
        name, _, version = found.group(3).partition("@")
        defined = found.group(2) != "UND"
        if defined or found.group(1) == "GLOBAL":
            yield name, version.lstrip("@"), defined


def version_owners(library):
    """Symbol version -> name of the library that must carry it."""
    owners = {}
    file = None
    for line in readelf("-V", library).splitlines():
        if found := VERSION_FILE.search(line):
            file = found.group(1)
        elif file and (found := VERSION_NAME.search(line)):
            owners[found.group(1)] = file
    return owners


def plan(libraries, present):
    """What to make: name of an absent library -> version -> symbols. `present` are names that the loader finds itself."""
    defined = {name for library in libraries for name, _, here in symbols(library) if here}
    wanted = collections.defaultdict(lambda: collections.defaultdict(set))
    for library in libraries:
        absent = [n for n in needed(library) if n not in present and not SYSTEM.match(n)]
        owners = version_owners(library)
        for soname in absent:
            wanted[soname]  # noqa: B018 (a library may be named and never used)
        for name, version, here in symbols(library):
            if here or not absent:
                continue
            if version:
                if owners.get(version) in absent:
                    wanted[owners[version]][version].add(name)
            elif name not in defined:
                for soname in absent:
                    wanted[soname][soname].add(name)
    return wanted


def compile_one(soname, versions, folder):
    """One shared object; all its functions are the same few bytes."""
    names = sorted({name for group in versions.values() for name in group})
    code = [".text"] + [f'.globl "{n}"\n.type "{n}", @function\n"{n}":' for n in names]
    code += ["mov $1, %eax", "ret", '.section .note.GNU-stack,"",@progbits']
    # Unversioned symbols of a library that has versions too get their own name as version: an unversioned reference takes any.
    script = "".join(f"{version} {{ global: {' '.join(f'{chr(34)}{n}{chr(34)};' for n in sorted(group))} }};\n"
                     for version, group in sorted(versions.items()) if group)
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work, "all.s")
        source.write_text("\n".join(code) + "\n")
        command = ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{soname}", "-o", str(folder / soname), str(source)]
        if script:
            pathlib.Path(work, "map").write_text(script)
            command.insert(1, f"-Wl,--version-script={work}/map")
        subprocess.run(command, check=True, capture_output=True, text=True)


def make(site_packages):
    """Makes what torch's libraries in this site-packages lack, beside them. Returns the names made."""
    torch = site_packages / "torch" / "lib"
    libraries = sorted(torch.glob("*.so"))
    nvidia = sorted(p for p in site_packages.glob("nvidia/**/lib*.so*") if p.is_file())
    for library in nvidia:  # torch looks for them beside itself first
        link = torch / library.name
        if not link.exists():
            link.symlink_to(library)
    present = {p.name for p in libraries} | {p.name for p in nvidia}
    wanted = plan(libraries, present)
    for soname, versions in wanted.items():
        compile_one(soname, versions, torch)
    return sorted(wanted)
