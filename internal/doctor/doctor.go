// Package doctor checks whether a host can run pods, and repairs the files of the container engine. The checks change nothing, apart from
// temporary files. The checks are independent of each other; a check that fails to run reports that.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/spec"
)

// Grade is the severity of a finding.
type Grade string

// The grades.
const (
	OK   Grade = "ok"
	Warn Grade = "warn" // pods run, with a limitation
	Fail Grade = "fail" // pods cannot run
)

// Finding is the result of a check.
type Finding struct {
	Check  string `json:"check"`
	Grade  Grade  `json:"grade"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// check is a check and its name.
type check struct {
	name string
	run  func() result
}

// result is a finding without the name of its check.
type result struct {
	grade        Grade
	detail, hint string
}

func ok(format string, args ...any) result { return result{OK, fmt.Sprintf(format, args...), ""} }

const (
	// checkTimeout is far longer than a check takes on a healthy host.
	checkTimeout = 20 * time.Second
	// daemonTimeout bounds the requests that a check sends to the daemon.
	daemonTimeout = 5 * time.Second
	// versionTimeout bounds the start of the OCI runtime.
	versionTimeout = 5 * time.Second
)

// Run runs all checks, one after the other. Invalid is the error of the configuration file, or nil. Version is that of the calling program.
// Sockets are the active socket units, by their paths.
func Run(
	ctx context.Context, c *config.Config, invalid *config.FileError, daemon *client.Client, version string, sockets map[string]string,
) []Finding {
	checks := []check{
		{"privileges", privileges},
		{"configuration", func() result { return configuration(invalid) }},
		{"OCI runtime", func() result { return ociRuntime(ctx, c, daemon) }},
		{"shim", shimProgram},
		{"monitor", func() result { return monitorProcess(ctx, c) }},
		{"Compose", composeProgram},
		{"kernel", kernel},
		{"overlay", func() result { return overlay(ctx, c.StateDir, daemon) }},
		{"seccomp", seccomp},
		{"AppArmor", func() result { return appArmor("/sys") }},
		{"user namespaces", func() result { return userNamespaces("/proc") }},
		{"cgroups", cgroups},
		{"mount namespace", mountNamespace},
		{"network", func() result { return podNetwork(ctx, c) }},
		{"state directory", func() result { return diskSpace(c.StateDir, c.Rootless()) }},
		{"run directory", func() result { return runDirectory(c.RunDir, c.Rootless()) }},
		{"log directory", func() result { return diskSpace(c.LogDir, c.Rootless()) }},
		{"container engine", func() result { return damagedFiles(c) }},
		{"state files", func() result { return stateVersions(c) }},
		{"clock", clock},
		{"daemon", func() result { return runningDaemon(ctx, c, daemon, version) }},
		{"sockets", func() result { return socketFiles(sockets) }},
		{"admission", func() result { return admissionPolicy(ctx, c, daemon) }},
		{"resources", func() result { return resources(ctx, c, daemon) }},
		{"host paths", func() result { return hostPaths(c) }},
		{"CDI devices", func() result { return cdiDevices(ctx, c.Policy.CDISpecDirs) }},
		{"pods directory", func() result { return podsDirectory(ctx, &c.Pods, daemon) }},
		{"image archives", func() result { return imageDirectories(ctx, daemon, c.Images.Dir, c.Images.SystemDir) }},
		{"rejected pods", func() result { return rejectedPods(ctx, daemon, time.Now()) }},
		{"pod state", func() result { return unsavedPods(ctx, daemon) }},
		{"volumes", func() result { return staleVolumes(ctx, daemon) }},
		{"names", func() result { return hiddenNames(ctx, daemon) }},
		{"reboots", func() result { return reboots(ctx, c, daemon) }},
		{"quarantined pods", func() result { return quarantinedPods(ctx, daemon) }},
	}
	if classes := c.Engine.RuntimeClasses; len(classes) > 0 {
		at := slices.IndexFunc(checks, func(k check) bool { return k.name == "shim" })
		checks = slices.Insert(checks, at, check{"runtime classes", func() result { return runtimeClasses(ctx, classes) }})
	}
	if c.Rootless() {
		checks = slices.DeleteFunc(checks, func(k check) bool { return slices.Contains(ofRoot(), k.name) })
		checks = append(ofUser(ctx, c), checks...)
	}
	findings := make([]Finding, 0, len(checks))
	for _, k := range checks {
		r := withTimeout(k.run)
		findings = append(findings, Finding{Check: k.name, Grade: r.grade, Detail: r.detail, Hint: r.hint})
	}
	return findings
}

// withTimeout runs a check with a timeout. A check that blocks, for example on an unreachable file server, cannot be interrupted. Its
// goroutine is left behind until the process exits.
func withTimeout(check func() result) result {
	done := make(chan result, 1)
	go func() { done <- check() }()
	t := time.NewTimer(checkTimeout)
	defer t.Stop()
	select {
	case r := <-done:
		return r
	case <-t.C:
		return result{
			Warn, fmt.Sprintf("no result within %v", checkTimeout),
			"check for a hanging file server, disk or daemon, for example with dmesg and mount",
		}
	}
}

// configuration reports all problems of the configuration file.
func configuration(invalid *config.FileError) result {
	if invalid == nil {
		return ok("valid")
	}
	problems := strings.ReplaceAll(invalid.Error(), "\n", "; ")
	if list := spec.Problems(nil); errors.As(invalid.Err, &list) && len(list) > 0 {
		problems = hinted(list)
	}
	switch {
	case invalid.LastValid:
		return result{Warn, problems, "correct the file, then reload it with systemctl reload podstead; the daemon uses the last valid one"}
	case invalid.Hidden:
		return result{Warn, problems, "run podstead doctor as root: this user cannot read the configuration that the daemon uses"}
	}
	return result{Fail, problems, "correct the file: no earlier one was valid, and the daemon does not start"}
}

// hinted returns problems on one line, with their hints.
func hinted(problems spec.Problems) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		if texts[i] = p.String(); p.Hint != "" {
			texts[i] += " (" + p.Hint + ")"
		}
	}
	return strings.Join(texts, "; ")
}

func privileges() result {
	if os.Geteuid() != 0 {
		return result{Fail, fmt.Sprintf("user %d is not root", os.Geteuid()), "run podstead as root, for example with sudo"}
	}
	if missing := missingCapabilities(); len(missing) > 0 {
		return result{
			Warn, "root without " + strings.Join(missing, ", ") + "; some pods may fail or get lower limits than they request",
			"add the missing capabilities to the systemd unit or the container in which podstead runs",
		}
	}
	return ok("root with all required capabilities")
}

func shimProgram() result {
	path := daemon.ShimPath()
	if path == "" {
		return result{
			Warn, "containerd-shim-podstead-v1 not found; it cleans up after pods that versions before 2026-11-29 have started",
			"install containerd-shim-podstead-v1 in the same directory as podstead",
		}
	}
	return ok("%s", path)
}

func composeProgram() result {
	path := daemon.Installed(compose.Program)
	if path == "" {
		return result{Warn, compose.Program + " not found; Compose files cannot be read", daemon.InstallHint(compose.Program)}
	}
	return ok("%s", path)
}

func runningDaemon(ctx context.Context, c *config.Config, daemon *client.Client, version string) result {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	v, err := daemon.Version(ctx)
	switch pods := savedPods(c); {
	case err != nil && pods > 0:
		return result{
			Warn, fmt.Sprintf("not running, unsupervised pods: %d", pods),
			"start the daemon, or run podstead get, which starts it on demand",
		}
	case err != nil:
		return ok("not running; commands start it on demand")
	case v.Version != version:
		return result{
			Warn, fmt.Sprintf("running with version %s, pid %d; this is version %s", v.Version, v.PID, version),
			"restart it with podstead daemon stop; containers keep running",
		}
	}
	return ok("running, version %s, pid %d", v.Version, v.PID)
}
