// Command sbom writes the bills of materials of Go programs: OUTPUT.spdx.json (SPDX 2.3) and OUTPUT.cdx.json (CycloneDX 1.6). The modules
// are those that the compiler has recorded in the programs, and the packages of npm that podstead contains. The same programs give the same
// files: the time is SOURCE_DATE_EPOCH.
//
//	sbom -version VERSION -npm PACKAGE.JSON -o OUTPUT PROGRAM...
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
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

// module is a Go module that is linked into a program, or a package of npm whose files it contains.
type module struct {
	path, version string
	npm           bool
}

// purl returns the package URL of the module.
func (m module) purl() string {
	if m.npm {
		return "pkg:npm/" + strings.Replace(m.path, "@", "%40", 1) + "@" + m.version
	}
	return "pkg:golang/" + m.path + "@" + m.version
}

func main() {
	version := flag.String("version", "", "version of the release")
	output := flag.String("o", "", "path of the output files without their extensions")
	npm := flag.String("npm", "", "path of the package.json with the packages that podstead contains")
	flag.Parse()
	if err := run(*version, *npm, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(version, npm, output string, programs []string) error {
	if version == "" || npm == "" || output == "" || len(programs) == 0 {
		return fmt.Errorf("usage: sbom -version VERSION -npm PACKAGE.JSON -o OUTPUT PROGRAM...")
	}
	m, err := read(version, npm, programs)
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

func read(version, npm string, paths []string) (*material, error) {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	m := &material{version: version, created: time.Unix(epoch, 0).UTC()}
	packages, err := readPackages(npm)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", npm, err)
	}
	all := map[module]bool{}
	for _, path := range paths {
		var contained []module
		if filepath.Base(path) == "podstead" {
			contained = packages
		}
		p, err := readProgram(path, contained)
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

// readPackages returns the packages of a package.json.
func readPackages(path string) (packages []module, err error) {
	var read struct{ Dependencies map[string]string }
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	for name, version := range read.Dependencies {
		packages = append(packages, module{path: name, version: version, npm: true})
	}
	return packages, err
}

func readProgram(path string, contained []module) (program, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	sum := sha256.Sum256(content)
	modules := map[module]bool{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}: true}
	for _, p := range contained {
		modules[p] = true
	}
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
	return module{path: dep.Path, version: dep.Version}
}

func sorted(modules map[module]bool) []module {
	return slices.SortedFunc(maps.Keys(modules), func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
}
