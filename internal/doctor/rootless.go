package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/rootless"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/oci"
)

// ofRoot are the checks that do not apply to a daemon without root, or are those of [ofUser] for it.
func ofRoot() []string {
	return []string{"privileges", "AppArmor", "user namespaces", "cgroups", "mount namespace", "network", "sockets", "CDI devices"}
}

// ofUser checks what a daemon without root needs.
func ofUser(ctx context.Context, c *config.Config) []check {
	return []check{
		{"privileges", func() result {
			return ok("user %d without root: pods have no devices", os.Geteuid())
		}},
		{"runtime directory", func() result { return runtimeDirectory(c, os.Geteuid()) }},
		{"group", func() result { return primaryGroup(user.LookupId) }},
		{"user IDs", userIDs},
		{"ID mapping", func() result { return mappingPrograms(exec.LookPath) }},
		{"user namespaces", func() result { return unprivileged("/proc") }},
		{"way out", func() result {
			return wayOut(exec.LookPath, "/dev/net/tun", (&rootless.Namespaces{StateDir: c.StateDir, RunDir: c.RunDir}).Outlet)
		}},
		{"host ports", func() result {
			return hostPorts((&rootless.Namespaces{StateDir: c.StateDir, RunDir: c.RunDir}).Forwarder)
		}},
		{"name servers", func() result { return nameServers("/etc/resolv.conf") }},
		{"AppArmor", func() result { return ok("not used without root: containers run without a profile") }},
		{"cgroups", func() result {
			return delegation(c.Engine.CgroupDriver, func() ([]string, error) {
				ctx, cancel := context.WithTimeout(ctx, delegationTimeout)
				defer cancel()
				return rootless.Delegable(ctx, config.UserRuntimeDir(os.LookupEnv, os.Geteuid()), os.Geteuid())
			})
		}},
		{"lingering", func() result { return lingering("/run/systemd/system", "/var/lib/systemd/linger") }},
	}
}

// runtimeDirectory checks that other users have no access to the runtime state.
func runtimeDirectory(c *config.Config, uid int) result {
	if err := c.CheckRuntimeDirs(uid); err != nil {
		return result{
			Fail, err.Error(),
			"use a directory of your own with mode 0700 in memory for XDG_RUNTIME_DIR, or log in with a session of systemd-logind",
		}
	}
	return ok("%s", c.RunDir)
}

// primaryGroup checks the group of this process: newgidmap maps only that of the user.
func primaryGroup(lookup func(uid string) (*user.User, error)) result {
	u, err := lookup(strconv.Itoa(os.Getuid()))
	if own := strconv.Itoa(os.Getgid()); err == nil && u.Gid != own {
		return result{
			Fail, fmt.Sprintf("group %s of this shell is not the group %s of user %s, so newgidmap maps no groups", own, u.Gid, u.Username),
			"use another shell than that of newgrp or sg",
		}
	}
	return ok("group %d of the user", os.Getgid())
}

// delegationTimeout bounds the answers of the systemd of the user.
const delegationTimeout = 5 * time.Second

// delegateHint is the command that delegates controllers to users.
const delegateHint = "run as root: mkdir -p /etc/systemd/system/user@.service.d; " +
	"(echo '[Service]'; echo 'Delegate=cpu cpuset io memory pids') >/etc/systemd/system/user@.service.d/delegate.conf; " +
	"systemctl daemon-reload; then log out everywhere, or restart the host"

// delegation checks that the systemd of the user delegates cgroups, with the controllers of limits.
func delegation(driver string, controllers func() ([]string, error)) result {
	if driver != string(podcgroup.Auto) {
		return result{
			Fail, "engine.cgroupDriver = " + strconv.Quote(driver) + ": without root, the systemd of the user delegates a cgroup",
			"remove the setting",
		}
	}
	const without = "pods with limits are rejected, and top shows no CPU and memory"
	list, err := controllers()
	if errors.Is(err, rootless.ErrCgroupV1) {
		return result{Warn, err.Error() + ": " + without, "boot with the kernel parameter systemd.unified_cgroup_hierarchy=1"}
	}
	if err != nil {
		return result{
			Warn, err.Error() + ": " + without, "use a session of systemd-logind, such as a login over SSH in place of a shell of su",
		}
	}
	var missing []string
	for _, name := range []string{cgroup.CPU, cgroup.Memory, cgroup.Pids} {
		if !slices.Contains(list, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return result{
			Warn, "controllers " + strings.Join(missing, ", ") + " are not delegated to users: pods with their limits are rejected",
			delegateHint,
		}
	}
	return ok("delegated by the systemd of the user, with the controllers %s", strings.Join(list, ", "))
}

// userIDs checks the IDs that the user may map.
func userIDs() result {
	var texts, hints []string
	for _, file := range []string{rootless.SubUIDs, rootless.SubGIDs} {
		err := rootless.CheckIDs(file)
		if err == nil {
			continue
		}
		texts = append(texts, err.Error())
		if e, is := errors.AsType[*rootless.Error](err); is {
			hints = append(hints, e.Hint)
		}
	}
	if len(texts) > 0 {
		return result{Fail, strings.Join(texts, "; "), strings.Join(hints, "; ")}
	}
	return ok("in %s and %s", rootless.SubUIDs, rootless.SubGIDs)
}

// mappingPrograms checks the programs that map IDs and enter namespaces.
func mappingPrograms(look func(string) (string, error)) result {
	if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && on == 1 {
		return result{
			Fail, "newuidmap gets no privileges: this process has no_new_privs",
			"use another shell: what started this one has set no_new_privs",
		}
	}
	var missing []string
	for program, pkg := range map[string]string{"newuidmap": "uidmap", "newgidmap": "uidmap", "nsenter": "util-linux"} {
		path, err := look(program)
		if err != nil {
			missing = append(missing, pkg)
			continue
		}
		if program != "nsenter" && !isPrivileged(path) {
			return result{
				Fail, path + " has neither the set-user-ID bit nor file capabilities, so it cannot map IDs",
				"reinstall the package uidmap as root",
			}
		}
	}
	if len(missing) > 0 {
		return result{Fail, "newuidmap, newgidmap or nsenter is not installed", "run as root: apt-get install uidmap util-linux"}
	}
	return ok("newuidmap, newgidmap and nsenter are installed")
}

// isPrivileged reports whether a program gets privileges when it is executed.
func isPrivileged(path string) bool {
	st, err := os.Stat(path)
	if err != nil {
		return false
	}
	_, err = unix.Getxattr(path, "security.capability", nil)
	return st.Mode()&fs.ModeSetuid != 0 || err == nil
}

// unprivileged checks whether users may create user namespaces.
func unprivileged(proc string) result {
	number := func(name string) (int, bool) {
		text, err := os.ReadFile(filepath.Join(proc, "sys", name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		return n, err == nil
	}
	if most, known := number("user/max_user_namespaces"); !known || most == 0 {
		return result{Fail, "the kernel permits no user namespaces", "run as root: sysctl -w user.max_user_namespaces=15000"}
	}
	if on, known := number("kernel/unprivileged_userns_clone"); known && on == 0 { // Debian 10 and earlier
		return result{
			Fail, "user namespaces are permitted for root only", "run as root: sysctl -w kernel.unprivileged_userns_clone=1",
		}
	}
	if on, known := number("kernel/apparmor_restrict_unprivileged_userns"); known && on == 1 {
		return result{Warn, "AppArmor restricts user namespaces to programs with a profile", rootless.AppArmorHint}
	}
	return ok("permitted for users")
}

// wayOut checks what connects pods with the networks of the host.
func wayOut(look func(string) (string, error), tun string, outlet func() (rootless.Outlet, error)) result {
	if _, err := look("pasta"); err != nil {
		return result{Warn, "pasta is not installed: pods reach each other, and nothing else", "run as root: apt-get install passt"}
	}
	const open = unix.R_OK | unix.W_OK
	if err := unix.Access(tun, open); err != nil {
		return result{
			Warn, fmt.Sprintf("%s: %v: pods reach each other, and nothing else", tun, err), "run as root: modprobe tun; chmod 0666 " + tun,
		}
	}
	o, err := outlet()
	switch {
	case err != nil:
		return result{Warn, err.Error(), ""}
	case !o.Needed:
		return ok("pasta is installed, and starts with the first pod; the host's loopback is not reached")
	case o.PID == 0 && o.Error != "":
		return result{
			Warn, "pods reach each other, and nothing else: " + o.Error,
			"remove the cause, then run podstead get after 30 seconds, which starts pasta again",
		}
	case o.PID == 0:
		return result{Warn, "pasta does not run: pods reach each other, and nothing else", "run podstead get, which starts it"}
	}
	return ok("pasta runs, PID %d; the host's loopback is not reached", o.PID)
}

// hostPorts checks what forwards host ports to pods.
func hostPorts(forwarder func() (rootless.Outlet, error)) result {
	o, err := forwarder()
	switch {
	case err != nil:
		return result{Warn, err.Error(), ""}
	case !o.Needed:
		return ok("the forwarder starts with the first pod")
	case o.PID == 0 && o.Error != "":
		return result{
			Warn, "pods have no host ports: " + o.Error,
			"remove the cause, then run podstead get after 30 seconds, which starts the forwarder again",
		}
	case o.PID == 0:
		return result{Warn, "the forwarder does not run: pods have no host ports", "run podstead get, which starts it"}
	}
	first, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if err != nil {
		return result{Warn, err.Error(), ""}
	}
	return ok("the forwarder runs, PID %d; ports from %s", o.PID, strings.TrimSpace(string(first)))
}

// nameServers checks that pods and pulls of images reach a name server of the host. One on a loopback address is reached through pasta,
// which sends queries to the first IPv4 one.
func nameServers(path string) result {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return result{Warn, err.Error(), ""}
	}
	servers := oci.NameServers(string(text))
	isIPv4 := func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }
	switch list := strings.Join(servers, ", "); {
	case len(servers) == 0:
		return result{
			Warn, path + " names no server: names of registries cannot be resolved", "correct " + path + ": add a line nameserver ADDRESS",
		}
	case !oci.OnlyLoopbackDNS(string(text)):
		return ok("%s", list)
	case !slices.ContainsFunc(servers, isIPv4):
		return result{
			Warn, list + ": pasta forwards queries to IPv4 servers only: names of registries cannot be resolved",
			"correct " + path + ": add a line nameserver with an IPv4 address",
		}
	default:
		return ok("%s, through pasta at %s", list, oci.ForwardedDNS)
	}
}

// lingering checks whether systemd keeps what a user who has logged out runs.
func lingering(systemd, dir string) result {
	if _, err := os.Stat(systemd); err != nil {
		return ok("not needed without systemd")
	}
	name := strconv.Itoa(os.Getuid())
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		return result{
			Warn, "off: pods stop after the logout of the user, and start again after the next login",
			"run as root: loginctl enable-linger " + name,
		}
	}
	return ok("enabled")
}
