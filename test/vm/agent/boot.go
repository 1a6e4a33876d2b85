package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	disk    = "/dev/vda"
	newRoot = "/new"
	systemd = "/lib/systemd/systemd"
	self    = "/run/host-agent"
)

// service is the unit of the agent. It does not depend on targets that may fail, so commands also run on a degraded system.
const service = `[Unit]
Description=Commands from the host
DefaultDependencies=no
After=dbus.service sysinit.target
StartLimitIntervalSec=0

[Service]
ExecStart=` + self + `
Environment=HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin
WorkingDirectory=/root
Restart=always
KillMode=mixed
OOMPolicy=continue
LimitNOFILE=1048576
`

// boot is the init of the initramfs. It returns only with an error.
func boot() error {
	if err := mountKernel(); err != nil {
		return err
	}
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if err := mountRoot(); err != nil {
		return err
	}
	if err := install(newRoot); err != nil {
		return err
	}
	return handOver()
}

func mountKernel() error {
	for _, m := range []struct{ target, kind string }{{"/dev", "devtmpfs"}, {"/proc", "proc"}, {"/sys", "sysfs"}} {
		if err := mount(m.kind, m.target, m.kind, 0); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, kind string, flags uintptr) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

// loadModules loads the files of a directory in the order of their names.
func loadModules(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		image, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err == nil {
			err = unix.InitModule(image, "")
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", f.Name(), err)
		}
	}
	return nil
}

// mountRoot waits for the disk, whose driver has just been loaded.
func mountRoot() error {
	end := time.Now().Add(30 * time.Second)
	for {
		_, err := os.Stat(disk)
		if err == nil {
			return mount(disk, newRoot, "ext4", unix.MS_NOATIME)
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return fmt.Errorf("wait for disk: %w", err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// install writes the agent and its unit into the new root's /run, so that the disk does not contain them.
func install(root string) error {
	if err := mount("tmpfs", filepath.Join(root, "run"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(root, self), "/init"); err != nil {
		return err
	}
	units := filepath.Join(root, "run/systemd/system")
	wants := filepath.Join(units, "basic.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil { // same mode as systemd's own
		return err
	}
	const name = "host-agent.service"
	if err := os.WriteFile(filepath.Join(units, name), []byte(service), 0o644); err != nil { // same mode as other units
		return err
	}
	return os.Symlink("../"+name, filepath.Join(wants, name))
}

func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// handOver switches to the new root and executes systemd.
func handOver() error {
	if err := unix.Mount("/dev", filepath.Join(newRoot, "dev"), "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move /dev: %w", err)
	}
	for _, target := range []string{"/proc", "/sys"} { // systemd mounts its own
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", target, err)
		}
	}
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	return fmt.Errorf("execute systemd: %w", unix.Exec(systemd, []string{systemd}, []string{"TERM=dumb"}))
}

func powerOff() { _ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) } // if it fails, the host's timeout stops the virtual machine
