package systemd

import (
	"errors"
	"os"
	"path/filepath"
)

// masked are units that the machine does not need, or that fail in namespaces.
var masked = []string{
	"getty.target", "systemd-logind.service", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
	"systemd-firstboot.service",
	"systemd-random-seed.service", "dev-hugepages.mount", "dev-mqueue.mount", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount",
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "proc-sys-fs-binfmt_misc.automount", "systemd-binfmt.service",
	"systemd-repart.service",
	"systemd-modules-load.service", "systemd-sysctl.service", "systemd-remount-fs.service", "systemd-udevd.service",
	"systemd-udev-trigger.service",
}

// writeTree writes the files of a new disk. Programs and libraries are the host's: /usr is mounted.
func writeTree(tree string) error {
	var errs []error
	for _, dir := range []string{
		"dev", "etc/systemd/system", "proc", "root", "run", "src", "sys", "tmp", "usr", ".old", ".usr/upper", ".usr/work",
		"var/log/journal",
	} {
		errs = append(errs, os.MkdirAll(filepath.Join(tree, dir), 0o755)) // a root file system is readable
	}
	for name, text := range map[string]string{
		"etc/machine-id": "0123456789abcdef0123456789abcdef\n", "etc/hostname": "podstead-test\n",
		"etc/hosts": "127.0.0.1 localhost podstead-test\n",
		"etc/fstab": "", "etc/resolv.conf": "", "etc/.updated": "", "var/.updated": "",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644)) // as in Debian
	}
	for _, name := range []string{"etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/ld.so.cache"} {
		text, err := os.ReadFile("/" + name)
		errs = append(errs, err, os.WriteFile(filepath.Join(tree, name), text, 0o644)) // as in Debian
	}
	for _, dir := range []string{"bin", "lib", "lib64", "sbin"} {
		errs = append(errs, os.Symlink("usr/"+dir, filepath.Join(tree, dir)))
	}
	for _, unit := range masked {
		errs = append(errs, os.Symlink("/dev/null", filepath.Join(tree, "etc/systemd/system", unit)))
	}
	return errors.Join(errs...)
}
