// Package vm boots a Debian in QEMU and runs Podstead's tests in it. It provides what development hosts and CI often do not have: only
// cgroup v2, with all controllers; systemd as init; all capabilities.
//
// It owns the image of the virtual machine, which is built from Debian packages and cached in .cache/vm, and the QEMU processes that it
// starts. A virtual machine has no network and no KVM: it is emulated, four or five times slower than its host. Its disk is a copy of the
// image's. The package must not depend on what its users run. It installs nothing on the host: .ci/deps vm does.
//
// The tests have the build tag vm: make vm. Each boots one virtual machine at a time, and tests in it what package test/systemd cannot
// test in namespaces.
package vm
