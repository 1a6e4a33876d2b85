// Command sbom writes the bills of materials of Go programs: OUTPUT.spdx.json (SPDX 2.3) and OUTPUT.cdx.json (CycloneDX 1.6). The modules
// are those that the compiler has recorded in the programs. The same programs give the same files: the time is SOURCE_DATE_EPOCH.
//
//	sbom -version VERSION -o OUTPUT PROGRAM...
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// material is what one release consists of.
type material struct {
	version  string
	created  time.Time
	programs []program
	modules  []module // sorted by path; includes the standard library of Go
}

// program is a file of the release.
type program struct {
	name, sha256 string
	modules      []module
}

// module is a Go module that is linked into a program.
type module struct{ path, version string }

// purl returns the package URL of the module.
func (m module) purl() string { return "pkg:golang/" + m.path + "@" + m.version }

func main() {
	version := flag.String("version", "", "version of the release")
	output := flag.String("o", "", "path of the output files without their extensions")
	flag.Parse()
	if err := run(*version, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(version, output string, programs []string) error {
	if version == "" || output == "" || len(programs) == 0 {
		return fmt.Errorf("usage: sbom -version VERSION -o OUTPUT PROGRAM")
	}
	m, err := read(version, programs)
	if err != nil {
		return err
	}
	for extension, write := range map[string]func(*os.File, *material) error{".spdx.json": writeSPDX, ".cdx.json": writeCycloneDX} {
		f, err := os.Create(output + extension)
		if err != nil {
			return err
		}
		if err := write(f, m); err != nil {
			return fmt.Errorf("write %s: %w", f.Name(), err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func read(version string, paths []string) (*material, error) {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	m := &material{version: version, created: time.Unix(epoch, 0).UTC()}
	all := map[module]bool{}
	for _, path := range paths {
		p, err := readProgram(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		m.programs = append(m.programs, p)
		for _, used := range p.modules {
			all[used] = true
		}
	}
	m.modules = sorted(all)
	return m, nil
}

func readProgram(path string) (program, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	sum := sha256.Sum256(content)
	modules := map[module]bool{{"std", strings.TrimPrefix(info.GoVersion, "go")}: true}
	for _, dep := range info.Deps {
		modules[linked(dep)] = true
	}
	return program{filepath.Base(path), hex.EncodeToString(sum[:]), sorted(modules)}, nil
}

// linked returns the module that a dependency was replaced by, if it was.
func linked(dep *debug.Module) module {
	for dep.Replace != nil {
		dep = dep.Replace
	}
	return module{dep.Path, dep.Version}
}

func sorted(modules map[module]bool) []module {
	return slices.SortedFunc(maps.Keys(modules), func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
}
