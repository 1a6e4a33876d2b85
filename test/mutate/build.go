package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// unoptimised halves the compilation time, and keeps inlined function bodies out of the export data of the package.
const unoptimised = "-gcflags=-N -l"

// untrimmed keeps the paths of sources as [kit.build] has them, whatever GOFLAGS is: they are a part of the export data.
const untrimmed = "-trimpath=false"

// listed is the part of the output of go list that is used.
type listed struct {
	ImportPath, Dir, Export, ForTest string
	GoFiles                          []string
	Module                           *struct{ GoVersion string }
}

// path returns the import path as the linker uses it, without the suffix of a test variant.
func (l *listed) path() string {
	path, _, _ := strings.Cut(l.ImportPath, " ")
	return path
}

// kit is everything that is built once for a package's tests. A mutant then takes one compilation and one link, because
// importers of the package are rebuilt only if its export data changes.
type kit struct {
	target  listed // the package
	main    string // the archive of the tests' main package
	imports string // the importcfg file of compiler and linker
}

// newKit compiles everything except the mutants. It writes the importcfg file to tmp.
func newKit(ctx context.Context, dir, tmp string) (*kit, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-test", untrimmed, unoptimised,
		"-json=ImportPath,Dir,Export,ForTest,GoFiles,Module", ".")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w: %s", dir, err, &stderr)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	k := &kit{imports: filepath.Join(tmp, "importcfg")}
	archives := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(output)); d.More(); {
		var l listed
		if err := d.Decode(&l); err != nil {
			return nil, err
		}
		switch external := strings.HasSuffix(l.path(), "_test"); {
		case l.ForTest == "" && strings.HasSuffix(l.ImportPath, ".test"):
			k.main = l.Export
			continue
		case l.Dir == absolute && !external && (k.target.ForTest == "" || l.ForTest != ""):
			k.target = l
		}
		if l.Export != "" && (archives[l.path()] == "" || l.ForTest != "") {
			archives[l.path()] = l.Export
		}
	}
	if k.main == "" {
		return nil, fmt.Errorf("%s has no tests", dir)
	}
	delete(archives, k.target.path())
	var b strings.Builder
	for path, archive := range archives {
		fmt.Fprintf(&b, "packagefile %s=%s\n", path, archive)
	}
	return k, os.WriteFile(k.imports, []byte(b.String()), 0o600)
}

// build compiles the tests with the mutant into tmp. The path is empty if the mutant does not compile.
func (k *kit) build(ctx context.Context, tmp string, m mutant) (path string, err error) {
	source := filepath.Join(tmp, filepath.Base(m.file))
	if err := os.WriteFile(source, m.source(), 0o600); err != nil {
		return "", err
	}
	original := filepath.Join(k.target.Dir, filepath.Base(m.file))
	archive, cfg, path := filepath.Join(tmp, "mutant.a"), filepath.Join(tmp, "importcfg"), filepath.Join(tmp, "mutant.test")
	files := make([]string, len(k.target.GoFiles)) // named as go build names them, otherwise the export data differs
	for i, name := range k.target.GoFiles {
		files[i] = "./" + name
		if name == filepath.Base(m.file) {
			files[i] = source
		}
	}
	compile := []string{
		"tool", "compile", "-N", "-l", "-o", archive, "-p", k.target.path(), "-complete", "-nolocalimports", "-pack",
		"-importcfg", k.imports, "-trimpath", source + "=>" + original,
	}
	if k.target.Module != nil {
		compile = append(compile, "-lang=go"+goMinor(k.target.Module.GoVersion))
	}
	if ok, err := k.run(ctx, append(compile, files...)...); !ok {
		return "", err
	}
	text, err := os.ReadFile(k.imports)
	if err == nil {
		err = os.WriteFile(cfg, fmt.Appendf(text, "packagefile %s=%s\n", k.target.path(), archive), 0o600)
	}
	if err != nil {
		return "", err
	}
	if ok, err := k.run(ctx, "tool", "link", "-s", "-w", "-o", path, "-importcfg", cfg, k.main); ok || err != nil {
		return path, err
	}
	return k.buildAll(ctx, tmp, source, original) // the export data has changed
}

// buildAll compiles everything that depends on a mutant, using an overlay.
func (k *kit) buildAll(ctx context.Context, tmp, source, original string) (path string, err error) {
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: source}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(tmp, "whole.test")
	if ok, err := k.run(ctx, "test", "-c", "-vet=off", untrimmed, unoptimised, "-ldflags=-s -w", "-o", path, "-overlay", file, "."); !ok {
		return "", err
	}
	return path, nil
}

// run runs the go command in the package's directory and reports whether it succeeded. An error means that it could not be run.
func (k *kit) run(ctx context.Context, args ...string) (ok bool, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = k.target.Dir
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, errors.Join(err, ctx.Err())
}

// goMinor returns a Go version without the patch number: 1.26 for 1.26.0.
func goMinor(version string) string {
	parts := strings.Split(version, ".")
	return strings.Join(slices.Clip(parts[:min(2, len(parts))]), ".")
}
