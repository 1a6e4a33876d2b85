// Package faults breaks things under the real program: it kills daemons and shims, fills disks, and lets registries hang.
// What must hold afterwards: nothing was started twice, no output was lost, pods reach their end, and nothing is left.
//
// Its tests need root. They use folders of their own, and loopback at most.
package faults
