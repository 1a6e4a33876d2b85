package main

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestBeyondBaseline checks the line about a pod file that asks for more than the level baseline, and the effect of --policy, for each
// command that reads pod files.
func TestBeyondBaseline(t *testing.T) {
	const (
		wild = "restartPolicy = \"Never\"\nhostPID = true\nvolumes = [{ name = \"root\", hostPath = { path = \"/\" } " +
			"}]\n[[containers]]\nname = \"c\"\nimage = \"busybox\"\n" +
			"command = [\"sh\", \"-c\", \"exit 0\"]\nsecurityContext.privileged = true\n"
		mild     = "restartPolicy = \"Never\"\n[[containers]]\nname = \"c\"\nimage = \"busybox\"\ncommand = [\"sh\", \"-c\", \"exit 0\"]\n"
		exceeds  = "$DIR/wild.toml: exceeds the baseline Pod Security Standard: hostPID, hostPath /, privileged\n"
		baseline = exceeds + "$DIR/wild.toml: hostPID: true: must be false or unset (violates \"baseline:latest\", Host Namespaces)\n" +
			"$DIR/wild.toml: containers[0].securityContext.privileged: true: must be false or unset (violates \"baseline:latest\", " +
			"Privileged Containers)\n" +
			"$DIR/wild.toml: volumes[0].hostPath: \"/\": hostPath volumes are forbidden (violates \"baseline:latest\", HostPath Volumes)\n"
		invalid = "podstead: the pod file is invalid\n"
	)
	for _, command := range []string{"validate", "plan", "apply", "run -d", "run"} {
		t.Run(command, func(t *testing.T) {
			h := newTestHost(t, api.Version{})
			h.write(t, "wild.toml", wild)
			h.write(t, "mild.toml", mild)
			exact := func(line string, code int, stderr string) {
				t.Helper()
				if got := h.run(t, line); got.code != code || got.stderr != stderr {
					t.Errorf("podstead %s: exit code %d, want %d; stderr:\n%swant:\n%s", line, got.code, code, got.stderr, stderr)
				}
			}
			exact(command+" --policy baseline $DIR/wild.toml", statusUsage, baseline+invalid)
			got := h.fails(t, command+" --policy restricted $DIR/mild.toml", statusUsage,
				"$DIR/mild.toml: containers[0].securityContext.runAsNonRoot: must be true in the pod or the container")
			if strings.Contains(got.stderr, "exceeds the baseline") {
				t.Errorf("a pod file that meets the level baseline: stderr:\n%s", got.stderr)
			}
			if pods := h.pods.Pods(); len(pods) > 0 || len(h.files.Files()) > 0 {
				t.Errorf("a pod that violates the level is defined: %v, %v", pods, h.files.Files())
			}

			// Without --policy, the level of the host holds, and the line is a notice.
			if got := h.run(t, command+" $DIR/wild.toml"); got.code != 0 || !strings.HasPrefix(got.stderr, exceeds) ||
				strings.Count(got.stderr, "exceeds") != 1 {
				t.Errorf("exit code %d, stderr:\n%swant one line\n%s", got.code, got.stderr, exceeds)
			}
			if got := h.run(t, command+" --policy baseline $DIR/mild.toml"); got.code != 0 || strings.Contains(got.stderr, "mild.toml: ") {
				t.Errorf("a pod file that meets the level: exit code %d, stderr:\n%s", got.code, got.stderr)
			}

			// The level may be stricter than that of the host only.
			h.write(t, "podstead.toml", "[policy]\npodSecurity = \"baseline\"\n")
			exact(command+" --policy privileged $DIR/mild.toml", statusUsage,
				"podstead: --policy privileged: must be at least as strict as podSecurity of this host, baseline\nhint: run podstead "+
					strings.Fields(command)[0]+" --help for usage\n")
			h.fails(t, command+" --policy restricted $DIR/mild.toml", statusUsage, "runAsNonRoot: must be true")
			if command == "validate" { // the others ask the daemon, which knows its level
				exact("validate $DIR/wild.toml", statusUsage, baseline+invalid)
				exact("validate $DIR/mild.toml", 0, "")
			}
		})
	}
}
