package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/spec"
)

const (
	// rejectedWindow is the time for which rejections are reported.
	rejectedWindow = 24 * time.Hour
	// maxRejected is the number of rejected pods that are reported, newest first.
	maxRejected = 5
)

// appArmor checks that profiles can be loaded if the kernel supports AppArmor. Parameter sys is /sys, except in tests.
func appArmor(sys string) result {
	enabled, err := os.ReadFile(sys + "/module/apparmor/parameters/enabled")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && strings.TrimSpace(string(enabled)) != "Y":
		return ok("not supported by the kernel, or disabled; containers run without a profile")
	case err != nil:
		return result{Warn, err.Error(), "run podstead doctor as root"}
	}
	if _, err := exec.LookPath("apparmor_parser"); err != nil {
		return result{
			Warn, "profiles cannot be loaded: " + err.Error(),
			"install apparmor_parser (Debian: apt-get install apparmor)",
		}
	}
	return ok("enabled, apparmor_parser installed")
}

// userNamespaces checks the requirements of hostUsers = false. Parameter proc is /proc, except in tests.
func userNamespaces(proc string) result {
	if _, err := os.Stat(proc + "/self/ns/user"); err != nil {
		return result{Warn, "not supported by the kernel; pods with hostUsers = false are rejected", "use a kernel with CONFIG_USER_NS"}
	}
	text, err := os.ReadFile(proc + "/sys/user/max_user_namespaces")
	if err != nil {
		return result{Warn, err.Error(), "use Linux 4.9 or later"}
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit == 0 {
		return result{
			Warn, "disabled (user.max_user_namespaces is 0); pods with hostUsers = false are rejected",
			"run sysctl -w user.max_user_namespaces=15000, and set it in /etc/sysctl.d",
		}
	}
	return ok("supported, at most %d", limit)
}

// admissionPolicy reports what pods are allowed to use, and whether the daemon runs with another configuration.
func admissionPolicy(ctx context.Context, c *config.Config, daemon *client.Client) result {
	configured := c.Policy.Admission()
	p := *server.PolicyOf(&configured)
	for _, dir := range p.HostPaths {
		if !isDir(dir) {
			return result{Warn, fmt.Sprintf("hostPaths contains %s, which is not a directory", dir), "create it with mkdir " + dir}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	v, err := daemon.Version(ctx)
	if err == nil && v.Policy != nil && !samePolicy(*v.Policy, p) {
		return result{
			Warn, fmt.Sprintf("the daemon runs with %s; the configuration has %s", describePolicy(*v.Policy), describePolicy(p)),
			"restart the daemon with podstead daemon stop; containers keep running",
		}
	}
	if c.Rootless() {
		p.Devices = nil // all are rejected
	}
	return ok("%s", describePolicy(p))
}

// samePolicy treats nil and empty lists as equal: JSON does not keep the difference.
func samePolicy(a, b api.Policy) bool {
	return a.PodSecurity == b.PodSecurity && slices.Equal(a.HostPaths, b.HostPaths) &&
		slices.Equal(a.Devices, b.Devices) && slices.Equal(a.UnsafeSysctls, b.UnsafeSysctls) && a.IgnoreRequests == b.IgnoreRequests &&
		maps.EqualFunc(a.SystemReserved, b.SystemReserved, func(a, b spec.Quantity) bool { return a.Cmp(b) == 0 })
}

func describePolicy(p api.Policy) string {
	paths := "none"
	switch {
	case slices.Contains(p.HostPaths, "/"):
		paths = "all"
	case len(p.HostPaths) > 0:
		paths = strings.Join(p.HostPaths, ", ")
	}
	sysctls := "none"
	if len(p.UnsafeSysctls) > 0 {
		sysctls = strings.Join(p.UnsafeSysctls, ", ")
	}
	devices := "none"
	switch {
	case slices.Contains(p.Devices, "/dev"), slices.Contains(p.Devices, "/"):
		devices = "all"
	case len(p.Devices) > 0:
		devices = strings.Join(p.Devices, ", ")
	}
	text := fmt.Sprintf("pod security %s; host paths %s; devices %s; unsafe sysctls %s", p.PodSecurity, paths, devices, sysctls)
	if p.IgnoreRequests {
		text += "; requests ignored"
	}
	var reserved []string
	for _, name := range slices.Sorted(maps.Keys(p.SystemReserved)) {
		q := p.SystemReserved[name]
		reserved = append(reserved, name+"="+q.String())
	}
	if len(reserved) > 0 {
		text += "; reserved " + strings.Join(reserved, ", ")
	}
	return text
}

// rejectedPods reports pods that were rejected and have not been accepted since.
func rejectedPods(ctx context.Context, c *client.Client, now time.Time) result {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	newest, err := rejections(ctx, c, now)
	switch {
	case errors.Is(err, api.ErrUnavailable):
		return ok("unknown, the daemon is not running")
	case err != nil:
		return result{Warn, "list events: " + err.Error(), "restart the daemon with podstead daemon stop; containers keep running"}
	case len(newest) == 0:
		return ok("none")
	}
	return rejectedResult(newest)
}

// rejections returns the newest rejection of each pod that has not been accepted since. A file of the pods directory that is removed or
// changed by hand emits no event: the list of pods has those that are rejected still.
func rejections(ctx context.Context, c *client.Client, now time.Time) (map[string]api.Event, error) {
	newest := map[string]api.Event{}
	for e, err := range c.Events(ctx, &client.EventQuery{Since: now.Add(-rejectedWindow)}) {
		switch {
		case err != nil:
			return nil, err
		case e.Kind == api.EventPodRejected:
			newest[e.Pod] = e
		case e.Kind == api.EventPodAccepted:
			delete(newest, e.Pod)
		}
	}
	if len(newest) > 0 {
		if list, err := c.Pods(ctx); err == nil {
			dropGone(newest, list.Items)
		}
	}
	return newest, nil
}

// dropGone removes the rejections of files of the pods directory whose pods are not listed any more.
func dropGone(newest map[string]api.Event, pods []api.Pod) {
	maps.DeleteFunc(newest, func(name string, e api.Event) bool {
		return e.Fields["file"] != "" &&
			!slices.ContainsFunc(pods, func(p api.Pod) bool { return p.Metadata.Name == name })
	})
}

// listPods returns the pods of the daemon, or the result of a check that cannot be made without them.
func listPods(ctx context.Context, c *client.Client) (api.PodList, *result) {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	list, err := c.Pods(ctx)
	switch {
	case errors.Is(err, api.ErrUnavailable):
		unknown := ok("unknown, the daemon is not running")
		return list, &unknown
	case err != nil:
		return list, &result{Warn, "list pods: " + err.Error(), "restart the daemon with podstead daemon stop; containers keep running"}
	}
	return list, nil
}

// quarantinedPods reports pods that are not supervised because their handling crashed the daemon.
func quarantinedPods(ctx context.Context, c *client.Client) result {
	list, unknown := listPods(ctx, c)
	if unknown != nil {
		return *unknown
	}
	var details, names []string
	for i := range list.Items {
		if p := &list.Items[i]; p.Status.Reason == api.ReasonQuarantined {
			details = append(details, p.Metadata.Name+": "+p.Status.Message)
			names = append(names, p.Metadata.Name)
		}
	}
	if len(details) == 0 {
		return ok("none")
	}
	return result{
		Warn, strings.Join(details, "; "), "run podstead delete " + strings.Join(names, " ") + ", change the pod files, and run them again",
	}
}

// unsavedPods reports pods whose newest state is not on the disk.
func unsavedPods(ctx context.Context, c *client.Client) result {
	return podsWith(ctx, c, api.StateNotDurable, "all states are saved",
		"free disk space, or check dmesg for disk errors; the states are saved again within a minute")
}

// staleVolumes reports pods whose volumes are not updated from their config maps and secrets.
func staleVolumes(ctx context.Context, c *client.Client) result {
	return podsWith(ctx, c, api.VolumesNotUpdated, "all volumes are up to date",
		"correct the files; the volumes are updated within seconds, containers need no restart unless they read files only once")
}

// podsWith reports pods with a condition that is present only while it needs attention.
func podsWith(ctx context.Context, daemon *client.Client, condition api.ConditionType, none, hint string) result {
	list, unknown := listPods(ctx, daemon)
	if unknown != nil {
		return *unknown
	}
	var details []string
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if c.Type == condition {
				details = append(details, list.Items[i].Metadata.Name+": "+c.Message)
			}
		}
	}
	if len(details) == 0 {
		return ok("%s", none)
	}
	if more := len(details) - maxFiles; more > 0 {
		details = append(details[:maxFiles], fmt.Sprintf("and %d more", more))
	}
	return result{Warn, strings.Join(details, "; "), hint}
}

// rejectedResult lists the newest rejection of each pod.
func rejectedResult(newest map[string]api.Event) result {
	list := order.Sorted(maps.Values(newest), func(a, b api.Event) int { return b.Time.Compare(a.Time) })
	var details, hints []string
	for _, e := range list[:min(len(list), maxRejected)] {
		details = append(details, e.Pod+": "+e.Fields["error"])
		if hint := e.Fields["hint"]; hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	if more := len(list) - maxRejected; more > 0 {
		details = append(details, fmt.Sprintf("and %d more", more))
	}
	return result{Warn, strings.Join(details, "; "), strings.Join(hints, "; ")}
}
