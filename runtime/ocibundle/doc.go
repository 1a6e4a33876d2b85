// Package ocibundle has what the engine and the monitor share about the bundle of a container: where the output goes, the process that is
// not in the specification, the mount point of the root file system, the kept seccomp filter, and the pause process. Shims of versions
// before 2026-11-29 read the same formats. It starts no process, and knows neither pods nor records.
package ocibundle
