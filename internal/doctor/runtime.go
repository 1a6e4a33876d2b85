package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ociruntime"
)

// ociRuntime checks the OCI runtime of new containers.
func ociRuntime(ctx context.Context, c *config.Config, daemon *client.Client) result {
	choice, err := selected(ctx, c, daemon)
	if err != nil {
		return result{
			Fail, err.Error(),
			"install crun or runc (Debian: apt-get install crun runc), or set another OCI runtime as runtime in [engine]",
		}
	}
	r := programVersion(ctx, choice.Program)
	if choice.Reason != "" {
		r.detail += "; selected by auto: " + choice.Reason
	}
	return r
}

// runtimeClasses checks the OCI runtimes of the runtime classes.
func runtimeClasses(ctx context.Context, classes []config.RuntimeClass) result {
	all := result{grade: OK}
	var details []string
	for _, c := range classes {
		r := programVersion(ctx, c.Runtime)
		details = append(details, c.Name+": "+r.detail)
		if all.grade == OK || r.grade == Fail {
			all.grade, all.hint = r.grade, r.hint
		}
		if r.grade == Fail {
			all.hint = "install the OCI runtime of the class, or change it in [[engine.runtimeClasses]] of podstead.toml"
		}
	}
	all.detail = strings.Join(details, "; ")
	return all
}

// selected returns the choice of the daemon that runs, or what a daemon would select. Only root can run a container to find out.
func selected(ctx context.Context, c *config.Config, daemon *client.Client) (ociruntime.Choice, error) {
	program := c.Engine.Runtime
	if program != ociruntime.Auto {
		return ociruntime.Choice{Program: program}, ociruntime.Check(program)
	}
	asked, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	if v, err := daemon.Version(asked); err == nil && v.RuntimeReason != "" {
		return ociruntime.Choice{Program: v.Runtime, Reason: v.RuntimeReason}, nil
	}
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("crun"); err == nil {
			return ociruntime.Choice{Program: "crun", Reason: "crun is installed; only root can check whether it works"}, nil
		}
	}
	return tried(ctx, c)
}

// tried selects as a daemon would, in a directory of its own.
func tried(ctx context.Context, c *config.Config) (ociruntime.Choice, error) {
	program, err := daemon.MonitorPath()
	if err != nil {
		return ociruntime.Choice{}, err
	}
	host, err := oci.DetectHost(ctx)
	if err != nil {
		return ociruntime.Choice{}, err
	}
	groups, err := podcgroup.New(podcgroup.Driver(c.Engine.CgroupDriver), runtime.DefaultCgroupRoot, host.UnifiedCgroups)
	if err != nil {
		return ociruntime.Choice{}, err
	}
	dir, err := os.MkdirTemp("", "podstead-doctor-")
	if err != nil {
		return ociruntime.Choice{}, err
	}
	choice, err := ociruntime.Select(ctx, ociruntime.Options{
		Program: c.Engine.Runtime, Dir: filepath.Join(dir, "trial"), Pause: program, Cgroups: groups, Host: host,
	})
	return choice, errors.Join(err, groups.Close(), os.Remove(dir))
}

// programVersion checks the version of an OCI runtime.
func programVersion(ctx context.Context, program string) result {
	path, err := exec.LookPath(program)
	if err != nil {
		return result{Fail, err.Error(), "reinstall the OCI runtime"}
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return result{Fail, fmt.Sprintf("%s --version: %v", path, err), "reinstall the OCI runtime"}
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if warning, found := escapes(string(out)); found {
		return result{
			Warn, fmt.Sprintf("%s (%s) %s", line, path, warning),
			"update the OCI runtime, or look up CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881 in the changelog of its package",
		}
	}
	return ok("%s (%s)", line, path)
}

// safeVersions are the lowest versions of OCI runtimes without a known escape from a container, by series. docs/security.md lists the
// vulnerabilities.
var safeVersions = map[string][]string{
	"runc": {"1.2.8", "1.3.3", "1.4.0-rc.3"},
	"crun": {"1.20"},
}

// runtimeVersion matches the first line of runc --version and crun --version.
var runtimeVersion = lazyregexp.New(`^(runc|crun) version (\d+)\.(\d+)(?:\.(\d+))?(?:-rc\.?(\d+))?`)

// version is a version of an OCI runtime. A release has a high release candidate.
type version struct{ major, minor, patch, candidate int }

func parseVersion(match []string) version {
	number := func(text string, missing int) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return missing
	}
	return version{number(match[2], 0), number(match[3], 0), number(match[4], 0), number(match[5], 1<<30)}
}

func (v version) compare(w version) int {
	return slices.Compare([]int{v.major, v.minor, v.patch, v.candidate}, []int{w.major, w.minor, w.patch, w.candidate})
}

// escapes returns a warning if the version that an OCI runtime prints has known escapes. Other programs than runc and crun are not
// assessed.
func escapes(output string) (detail string, found bool) {
	match := runtimeVersion.FindStringSubmatch(output)
	if match == nil {
		return "", false
	}
	name, have := match[1], parseVersion(match)
	safe := safeVersions[name]
	for i, text := range safe {
		lowest := parseVersion(runtimeVersion.FindStringSubmatch(name + " version " + text))
		last := i == len(safe)-1
		if have.compare(lowest) >= 0 && (last || have.major == lowest.major && have.minor == lowest.minor) {
			return "", false
		}
	}
	detail = fmt.Sprintf("has known container escapes, fixed in %s", strings.Join(safe, ", "))
	if own := distribution(output); own != "" {
		detail += fmt.Sprintf("; distribution package %s may include the fixes", own)
	}
	return detail, true
}

// packageVersion matches the version of a package. Upstream prints a hash, or one after a tag such as v1.1.15.
var packageVersion = lazyregexp.New(`^\d+\.\d`)

// distribution returns the package version that Debian and its derivatives print as the commit, such as 1.1.5+ds1-1+deb12u1.
func distribution(output string) string {
	for line := range strings.Lines(output) {
		if commit, ok := strings.CutPrefix(strings.TrimSpace(line), "commit: "); ok && packageVersion.MatchString(commit) {
			return commit
		}
	}
	return ""
}
