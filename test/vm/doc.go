// Package vm boots a Debian of its own in QEMU and runs Podstead's tests in it. It is for what a development machine or a CI's does not
// have: cgroup v2 and nothing else with all its controllers, systemd as the init, every capability.
//
// It owns the machine's image, which is made of Debian's packages and kept below .cache/vm, and the QEMU processes that it starts. A
// machine has no network and no KVM: it is emulated, four or five times slower than its host. What is written in it is gone with it,
// unless it was given a disk of its own. The package must not know what its users run, and it installs nothing on the host: .ci/deps vm
// does.
//
// The tests themselves have the build tag vm: make vm.
package vm
