package spec_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/spec"
)

// corpusWarnings are the warnings of all valid pod files of the repository, as "file: path (code)". Each is right: the file is about what
// it warns of, has a grace period that no shutdown grants, or has a long timeout for an emulated host.
var corpusWarnings = []string{
	"cmd/podstead/testdata/e2e/habits.txtar/web.toml: terminationGracePeriodSeconds (grace-over-shutdown)",
	"cmd/podstead/testdata/e2e/wait.txtar/web.toml: terminationGracePeriodSeconds (grace-over-shutdown)",
	"cmd/podstead/testdata/e2e/warnings.txtar/line.toml: containers[0].command[0] (command-in-one-string)",
	"cmd/podstead/testdata/e2e/warnings.txtar/low-port.toml: containers[0].ports[0].containerPort (low-port)",
	"cmd/podstead/testdata/e2e/warnings.txtar/memory.toml: volumes.cache.emptyDir.sizeLimit (memory-volume-over-limit)",
	"cmd/podstead/testdata/e2e/warnings.txtar/millibytes.toml: containers[0].resources.limits.memory (millibytes)",
	"cmd/podstead/testdata/script/rerun.txtar/web.toml: terminationGracePeriodSeconds (grace-over-shutdown)",
	"cmd/podstead/testdata/script/validate.txtar/long.toml: terminationGracePeriodSeconds (grace-over-shutdown)",
	"cmd/podstead/testdata/script/validate.txtar/unknown.toml:  (unknown-code)",
	"cmd/podstead/testdata/script/validate.txtar/unknown.toml: containers[0].livenessProbe (liveness-before-start)",
	"cmd/podstead/testdata/script/validate.txtar/web.toml: containers[0].livenessProbe (liveness-before-start)",
	"supervisor/lifecycle/testdata/scenarios/probe-grace-period.txtar/pod.toml: terminationGracePeriodSeconds (grace-over-shutdown)",
	"supervisor/lifecycle/testdata/scenarios/probe-liveness-never.txtar/pod.toml: containers[0].livenessProbe (liveness-without-restart)",
	"supervisor/simulate/testdata/contract/conformance.txtar/10-liveness/pods.toml: containers[0].livenessProbe (liveness-without-restart)",
	"supervisor/simulate/testdata/contract/conformance.txtar/18-liveness/pods.toml: terminationGracePeriodSeconds (grace-over-shutdown)",
	"supervisor/simulate/testdata/contract/conformance.txtar/18-startup/pods.toml: terminationGracePeriodSeconds (grace-over-shutdown)",
	"test/cluster/testdata/pods.txtar/liveness.toml: containers[0].livenessProbe (liveness-without-restart)",
	"test/cluster/testdata/pods.txtar/liveness.toml: containers[0].livenessProbe.timeoutSeconds (timeout-over-period)",
	"test/cluster/testdata/pods.txtar/not-started.toml: containers[0].startupProbe.timeoutSeconds (timeout-over-period)",
	"test/cluster/testdata/pods.txtar/sidecar-not-started.toml: initContainers[0].startupProbe.timeoutSeconds (timeout-over-period)",
	"testdata/good/everything.toml: containers[0].livenessProbe.timeoutSeconds (timeout-over-period)",
}

// TestLintOfCorpora looks for warnings in the examples and in all pod files that tests have, also in their archives.
func TestLintOfCorpora(t *testing.T) {
	var got []string
	valid := 0
	look := func(name string, text []byte) {
		if !slices.Contains([]string{".toml", ".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			return
		}
		parts, problems := spec.Options{Lint: &spec.Lint{ShutdownGracePeriod: time.Minute}}.ParseParts(name, text)
		if len(problems.Errors()) > 0 {
			return
		}
		valid += len(parts)
		for _, p := range append(problems, spec.LintWaits(parts, nil, len(parts) > 1)...) {
			if p.Code != "" {
				got = append(got, strings.TrimPrefix(name, "../")+": "+p.Path+" ("+p.Code+")")
			}
		}
	}
	for _, dir := range []string{"../examples", "testdata", "../cmd", "../supervisor", "../test"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "recordings" { // their probes have timeouts for a loaded host
				return fs.SkipDir
			}
			if err != nil || e.IsDir() {
				return err
			}
			if filepath.Ext(path) != ".txtar" {
				text, err := os.ReadFile(path)
				look(path, text)
				return err
			}
			archive, err := txtar.ParseFile(path)
			if err == nil {
				for _, f := range archive.Files {
					look(path+"/"+f.Name, f.Data)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if valid < 300 {
		t.Errorf("only %d valid pods", valid)
	}
	slices.Sort(got)
	if diff := cmp.Diff(corpusWarnings, got); diff != "" {
		t.Errorf("warnings of %d pods (-want +got):\n%s", valid, diff)
	}
}
