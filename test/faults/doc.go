// Package faults injects faults under the real programs: it kills daemons and shims, fills disks, and uses registries that hang.
// Afterwards nothing may have been started twice, no output may be lost, pods must terminate, and nothing may be left behind.
//
// The tests need root. They use directories of their own, and the network namespace of their own only.
package faults
