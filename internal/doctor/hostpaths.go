package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/podstead/podstead/internal/config"
)

// hostPaths reports directories of the policy that contain directories of the daemon, or that users other than root can write to. That
// all directories are allowed, as by default, is reported without a warning.
func hostPaths(c *config.Config) result {
	only := "only privileged containers can mount it"
	all := "all; those that contain directories of the daemon require a privileged container"
	owners, cure := []int{0}, "make root the owner of the directory, and let only root write to it"
	if c.Rootless() { // privileged containers are rejected
		owners, cure = append(owners, os.Geteuid()), "make root or this user the owner of the directory, and let no other user write to it"
		only, all = "no container can mount it", "all; no container can mount those that contain directories of the daemon"
	}
	var details []string
	writable := false
	for _, dir := range c.Policy.HostPaths {
		if filepath.Clean(dir) == "/" {
			continue
		}
		if inside := ownPaths(c, dir); len(inside) > 0 {
			details = append(details, fmt.Sprintf("%s contains %s: %s", dir, strings.Join(inside, ", "), only))
		}
		if reason := writableByOthers(dir, owners); reason != "" {
			details, writable = append(details, dir+": "+reason), true
		}
	}
	switch {
	case writable:
		return result{
			Warn, strings.Join(details, "; "), cure + "; other users can replace what containers mount",
		}
	case len(details) > 0:
		return result{Warn, strings.Join(details, "; "), "remove directories that overlap those of the daemon from hostPaths in [policy]"}
	case slices.ContainsFunc(c.Policy.HostPaths, func(dir string) bool { return filepath.Clean(dir) == "/" }):
		return ok("%s", all)
	case len(c.Policy.HostPaths) == 0:
		return ok("none")
	}
	return ok("%s", strings.Join(c.Policy.HostPaths, ", "))
}

// ownPaths returns the directories of the daemon, and its socket, that a directory contains or that contain it.
func ownPaths(c *config.Config, dir string) []string {
	dir = config.Resolve(dir)
	return slices.DeleteFunc(c.OwnPaths(), func(path string) bool { return !inside(path, dir) && !inside(dir, path) })
}

func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// writableByOthers returns how users other than the owners can write to a directory, or "".
func writableByOthers(dir string, owners []int) string {
	info, err := os.Stat(dir)
	if err != nil {
		return "" // the check of the policy reports it
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	switch {
	case is && !slices.Contains(owners, int(stat.Uid)):
		return fmt.Sprintf("owned by uid %d, not by root", stat.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("users other than its owner can write to it (mode %04o)", info.Mode().Perm())
	}
	return ""
}
