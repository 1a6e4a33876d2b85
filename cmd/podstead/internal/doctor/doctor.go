// Package doctor looks at a machine and says what pods need that it lacks, and how to mend it. It changes nothing, and every
// check stands for itself: one that cannot look says so.
package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/cmd/podstead/internal/daemon"
)

// Grade says how bad it is.
type Grade string

// The grades.
const (
	OK   Grade = "ok"
	Warn Grade = "warn" // pods run, and something is not as good as it could be
	Fail Grade = "fail" // pods do not run
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Grade  Grade  `json:"grade"`
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"` // what a person can do
}

// look is the outcome of a check before it has its name.
type look struct {
	grade        Grade
	detail, mend string
}

func ok(format string, args ...any) look { return look{OK, fmt.Sprintf(format, args...), ""} }

// Look makes all checks.
func Look(ctx context.Context, c *config.Config, client *api.Client, version string) []Finding {
	checks := []struct {
		name  string
		check func() look
	}{
		{"privileges", privileges},
		{"OCI runtime", func() look { return ociRuntime(ctx, c.Engine.Runtime) }},
		{"shim", shimProgram},
		{"kernel", kernel},
		{"seccomp", seccomp},
		{"AppArmor", func() look { return appArmor("/sys") }},
		{"user namespaces", func() look { return userNamespaces("/proc") }},
		{"cgroups", cgroups},
		{"mount namespace", mountNamespace},
		{"network", func() look { return podNetwork(ctx, c) }},
		{"state folder", func() look { return room(c.StateDir) }},
		{"run folder", func() look { return room(c.RunDir) }},
		{"log folder", func() look { return room(c.LogDir) }},
		{"clock", clock},
		{"daemon", func() look { return daemonAnswers(ctx, c, client, version) }},
		{"policy", func() look { return podPolicy(ctx, c, client) }},
		{"refused pods", func() look { return refusedPods(ctx, client, time.Now()) }},
	}
	findings := make([]Finding, 0, len(checks))
	for _, k := range checks {
		l := inTime(k.check)
		findings = append(findings, Finding{Check: k.name, Grade: l.grade, Detail: l.detail, Mend: l.mend})
	}
	return findings
}

// patience is far above what a check takes on a machine that answers.
const patience = 20 * time.Second

// inTime gives up a check that waits for something which does not answer, such as a folder on a file server that is gone. What it
// waits for cannot be interrupted: it goes on beside the others, and ends with the process.
func inTime(check func() look) look {
	done := make(chan look, 1)
	go func() { done <- check() }()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case l := <-done:
		return l
	case <-limit.C:
		return look{Warn, fmt.Sprintf("no answer within %v", patience), "look for a file server, a disk or a daemon that hangs: dmesg, mount"}
	}
}

func privileges() look {
	if os.Geteuid() != 0 {
		return look{Fail, fmt.Sprintf("user %d is not root", os.Geteuid()), "run podstead as root, such as with sudo"}
	}
	if missing := missingCapabilities(); len(missing) > 0 {
		return look{
			Warn, "root without " + strings.Join(missing, ", "),
			"containers get lower limits than they ask for; give the capability to the service or to the container that podstead runs in",
		}
	}
	return ok("root with all that is needed")
}

func ociRuntime(ctx context.Context, program string) look {
	path, err := exec.LookPath(program)
	if err != nil {
		return look{Fail, err.Error(), "install runc (Debian: apt-get install runc), or name another as [engine] runtime"}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return look{Fail, fmt.Sprintf("%s --version: %v", path, err), "install it anew"}
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return ok("%s (%s)", line, path)
}

func shimProgram() look {
	path, err := daemon.ShimPath()
	if err != nil {
		return look{Fail, err.Error(), "install podstead anew"}
	}
	if self, err := os.Executable(); err == nil && self == path {
		return look{
			Warn, "podstead itself serves as the shim, which takes about 2 MB more for each pod",
			"install containerd-shim-podstead-v1 beside podstead",
		}
	}
	return ok("%s", path)
}

func daemonAnswers(ctx context.Context, c *config.Config, client *api.Client, version string) look {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := client.Version(ctx)
	switch {
	case err != nil && podsOnDisk(c) > 0:
		return look{Warn, fmt.Sprintf("none runs, and there are %d pods", podsOnDisk(c)), "any command, such as podstead get, starts one that takes them up"}
	case err != nil:
		return ok("none runs; a command that needs one starts it")
	case v.Version != version:
		return look{
			Warn, fmt.Sprintf("process %d has version %s, this is %s", v.PID, v.Version, version),
			"podstead daemon stop makes it leave; containers run on, and the next one takes them up",
		}
	}
	return ok("version %s, process %d", v.Version, v.PID)
}
