package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// buildTimeout is for downloading and unpacking a hundred packages.
	buildTimeout = 10 * time.Minute
	diskSize     = 2 << 30 // a sparse file, of which a sixth is used
	machineID    = "0123456789abcdef0123456789abcdef"
)

// Image is what virtual machines boot from. They do not change it.
type Image struct {
	Disk   string // the root file system, ext4
	Kernel string
	// modules are the drivers that the kernel needs for its disks and its port, in load order.
	modules []string
}

// initModules are loaded before the root file system is mounted.
var initModules = []string{"virtio_pci", "virtio_blk", "virtio_console", "virtio-rng", "overlay"}

// Build returns the image for Debian's current packages. It builds the image if dir does not have it, and removes other images from dir.
// Only one process at a time builds in dir; others wait.
func Build(ctx context.Context, dir string) (Image, error) {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	kernel, err := kernelPackage(ctx)
	if err != nil {
		return Image{}, err
	}
	key, err := imageKey(ctx, kernel)
	if err != nil {
		return Image{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { // a cache
		return Image{}, err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	home := filepath.Join(dir, key)
	if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
		err = errors.Join(removeImages(dir), build(ctx, home, kernel))
		if err != nil {
			return Image{}, fmt.Errorf("build image: %w", err)
		}
	}
	return openImage(home)
}

// lock waits until no other process holds the lock.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) // empty
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // a descriptor fits into an int
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing unlocks
}

// removeImages removes images of other package versions, and what a killed build left.
func removeImages(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// build makes an image in a temporary directory and renames it to home when it is complete.
func build(ctx context.Context, home, kernel string) (err error) {
	dir := home + ".new"
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, unpacked := filepath.Join(dir, "root"), filepath.Join(dir, "kernel")
	if err := os.MkdirAll(unpacked, 0o755); err != nil { // a cache
		return err
	}
	// mmdebstrap mounts the host's /dev. In a mount namespace of its own, no mount is left in the directories that are removed, and in a
	// PID namespace of its own, no process.
	if _, err := output(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "mmdebstrap", "--mode=root",
		"--variant=essential", "--quiet", "--include="+strings.Join(guestPackages, ","),
		"--aptopt=APT::Install-Recommends \"false\"", "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*", suite, root); err != nil {
		return err
	}
	if err := unpackKernel(ctx, unpacked, kernel); err != nil {
		return err
	}
	release, err := onlyEntry(filepath.Join(unpacked, "lib/modules"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(root, modulesPath), 0o755); err != nil { // as in Debian
		return err
	}
	if err := os.Rename(filepath.Join(unpacked, "lib/modules", release), filepath.Join(root, modulesPath, release)); err != nil {
		return err
	}
	if _, err := output(ctx, "chroot", root, "depmod", release); err != nil {
		return err
	}
	if err := configure(root); err != nil {
		return err
	}
	if err := keep(dir, root, unpacked, release); err != nil {
		return err
	}
	if err := makeDisk(ctx, filepath.Join(dir, "disk"), root); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(root), os.RemoveAll(unpacked), os.Rename(dir, home))
}

// unpackKernel downloads the kernel package into dir and unpacks it there, without installing it.
func unpackKernel(ctx context.Context, dir, name string) error {
	if _, err := output(ctx, "env", "--chdir="+dir, "apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", name); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("download %s: got %v, %w", name, packages, err)
	}
	_, err = output(ctx, "dpkg-deb", "-x", packages[0], dir)
	return err
}

func onlyEntry(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 {
		return "", fmt.Errorf("%s has %d entries, want 1", dir, len(entries))
	}
	return entries[0].Name(), nil
}

// configure writes the files that differ from Debian's, so that the first boot is not special.
func configure(root string) error {
	var errs []error
	for name, text := range map[string]string{
		"machine-id": machineID + "\n", "hostname": "podstead-vm\n", "hosts": "127.0.0.1 localhost podstead-vm\n", "fstab": "",
		"resolv.conf": "",
	} {
		path := filepath.Join(root, "etc", name)
		_ = os.Remove(path) // it may be a link
		errs = append(errs, os.WriteFile(path, []byte(text), 0o644))
	}
	return errors.Join(errs...)
}

// keep puts beside the disk what the virtual machine needs before it has a root file system: the kernel and the first modules.
func keep(dir, root, unpacked, release string) error {
	if err := os.Rename(filepath.Join(unpacked, "boot/vmlinuz-"+release), filepath.Join(dir, "vmlinuz")); err != nil {
		return err
	}
	source := filepath.Join(root, modulesPath, release)
	deps, err := os.ReadFile(filepath.Join(source, "modules.dep"))
	if err != nil {
		return err
	}
	files, err := loadOrder(string(deps), initModules)
	if err != nil {
		return err
	}
	target := filepath.Join(dir, "modules")
	if err := os.Mkdir(target, 0o755); err != nil { // a cache
		return err
	}
	for i, file := range files {
		module, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%02d-%s", i, filepath.Base(file))
		if err := os.WriteFile(filepath.Join(target, name), module, 0o644); err != nil { // a cache
			return err
		}
	}
	return nil
}

func makeDisk(ctx context.Context, disk, root string) error {
	f, err := os.Create(disk)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(diskSize), f.Close()); err != nil {
		return err
	}
	_, err = output(ctx, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", root, disk)
	return err
}

// CopyDisk makes a sparse copy of the disk, for a virtual machine that keeps what it writes.
func (i Image) CopyDisk(ctx context.Context, path string) error {
	_, err := output(ctx, "cp", "--sparse=always", "--reflink=auto", i.Disk, path)
	return err
}

// openImage returns the image in home.
func openImage(home string) (Image, error) {
	modules, err := filepath.Glob(filepath.Join(home, "modules", "*")) // sorted
	if err != nil {
		return Image{}, err
	}
	return Image{Disk: filepath.Join(home, "disk"), Kernel: filepath.Join(home, "vmlinuz"), modules: modules}, nil
}
