package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/event"
)

const (
	// daemonLimit bounds what the daemon is asked.
	daemonLimit = 5 * time.Second
	// refusedFor is for how long a refusal is of interest.
	refusedFor = 24 * time.Hour
	// maxRefused is how many refused pods are told, the newest.
	maxRefused = 5
)

// appArmor looks for the kernel's AppArmor below a folder, /sys but for tests, and for the program that loads a profile.
func appArmor(sys string) look {
	enabled, err := os.ReadFile(sys + "/module/apparmor/parameters/enabled")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && strings.TrimSpace(string(enabled)) != "Y":
		return ok("the kernel has none, or it is switched off: containers have no profile of it")
	case err != nil:
		return look{Warn, err.Error(), "run it as root"}
	}
	if _, err := exec.LookPath("apparmor_parser"); err != nil {
		return look{
			Warn, "the kernel has it, and the program that loads profiles is missing: " + err.Error(),
			"install it (Debian: apt-get install apparmor)",
		}
	}
	return ok("the kernel and apparmor_parser are there")
}

// userNamespaces looks below a folder, /proc but for tests, for what hostUsers = false needs.
func userNamespaces(proc string) look {
	if _, err := os.Stat(proc + "/self/ns/user"); err != nil {
		return look{Warn, "the kernel has none: pods with hostUsers = false do not start", "use a kernel with CONFIG_USER_NS"}
	}
	text, err := os.ReadFile(proc + "/sys/user/max_user_namespaces")
	if err != nil {
		return look{Warn, err.Error(), "use a kernel of 4.9 or later"}
	}
	most, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || most == 0 {
		return look{
			Warn, "none are allowed (user.max_user_namespaces is 0): pods with hostUsers = false do not start",
			"sysctl -w user.max_user_namespaces=15000, and the same in /etc/sysctl.d",
		}
	}
	return ok("up to %d", most)
}

// podPolicy says what pods may ask for: by the daemon that runs, else by the configuration.
func podPolicy(ctx context.Context, c *config.Config, client *api.Client) look {
	p := c.Policy.OfPods()
	for _, dir := range p.HostPaths {
		if !isDir(dir) {
			return look{Warn, fmt.Sprintf("hostPaths names %s, which is no folder: nothing can lie there", dir), "make it: mkdir " + dir}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, daemonLimit)
	defer cancel()
	v, err := client.Version(ctx)
	if err == nil && v.Policy != nil && !samePolicy(*v.Policy, p) {
		return look{
			Warn, fmt.Sprintf("the daemon has %s; the configuration says %s", describePolicy(*v.Policy), describePolicy(p)),
			"podstead daemon stop makes it leave; containers run on, and the next one has the new policy",
		}
	}
	return ok("%s", describePolicy(p))
}

// samePolicy takes lists without values for the same, whether they are nil or not: neither has passed the wire.
func samePolicy(a, b admission.Policy) bool {
	return a.PodSecurity == b.PodSecurity && slices.Equal(a.HostPaths, b.HostPaths) && slices.Equal(a.UnsafeSysctls, b.UnsafeSysctls)
}

func describePolicy(p admission.Policy) string {
	paths := "none"
	switch {
	case slices.Contains(p.HostPaths, "/"):
		paths = "anywhere"
	case len(p.HostPaths) > 0:
		paths = "below " + strings.Join(p.HostPaths, ", ")
	}
	sysctls := "none"
	if len(p.UnsafeSysctls) > 0 {
		sysctls = strings.Join(p.UnsafeSysctls, ", ")
	}
	return fmt.Sprintf("pod security %s; host paths %s; unsafe sysctls %s", p.PodSecurity, paths, sysctls)
}

// refusedPods tells of pods that were refused and have not come since, and what can be done.
func refusedPods(ctx context.Context, client *api.Client, now time.Time) look {
	ctx, cancel := context.WithTimeout(ctx, daemonLimit)
	defer cancel()
	newest := map[string]api.Event{}
	for e, err := range client.Events(ctx, &api.EventQuery{Since: now.Add(-refusedFor)}) {
		switch {
		case errors.Is(err, api.ErrUnavailable):
			return ok("none is known: no daemon runs")
		case err != nil:
			return look{Warn, "the daemon does not tell: " + err.Error(), "podstead daemon stop makes it leave; any command starts it again"}
		case e.Kind == event.PodRejected:
			newest[e.Pod] = e
		case e.Kind == event.PodAccepted:
			delete(newest, e.Pod)
		}
	}
	if len(newest) == 0 {
		return ok("none")
	}
	return tellRefused(newest)
}

func tellRefused(newest map[string]api.Event) look {
	var list []api.Event
	for _, e := range newest {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b api.Event) int { return b.Time.Compare(a.Time) })
	var details, hints []string
	for _, e := range list[:min(len(list), maxRefused)] {
		details = append(details, e.Pod+": "+e.Fields["error"])
		if hint := e.Fields["hint"]; hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	if more := len(list) - maxRefused; more > 0 {
		details = append(details, fmt.Sprintf("and %d others", more))
	}
	return look{Warn, strings.Join(details, "; "), strings.Join(hints, "; ")}
}
