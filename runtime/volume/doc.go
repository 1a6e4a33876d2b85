// Package volume sets up the volumes of pods and returns the mounts of their containers, by the rules of the kubelet.
//
// It owns these directories and the mounts in them:
//
//	<DataDir>/<uid>/volumes/<volume>         emptyDir on disk
//	<RunDir>/<uid>/memory/<volume>           emptyDir in memory, a tmpfs for each volume
//	<RunDir>/<uid>/files/<volume>            files from config maps, secrets and pod fields, one tmpfs for each pod
//	<RunDir>/<uid>/subpaths/<run>/<number>   bind mount for a run of a container, until it is created
//	<ClaimsDir>/<claim>                      persistent volume, which outlives pods
//
// The package keeps no other state. After a crash it finds everything in these directories and in the kernel's list of
// mounts.
//
// Content written by containers is not trusted. Paths below a volume are resolved with openat2, so that symbolic links
// cannot lead out of it. Removals and changes of ownership do not cross mounts and do not follow links. Mounts are made
// private before they are unmounted.
//
// The caller decides when volumes are set up or updated, and provides [Values] and the directories of images. The package
// must not pull images or read config maps. It mounts in the mount namespace of this process, which must be that of the
// host.
//
// Files named tree operate on directory trees that containers can change concurrently: they never follow a symbolic link out of a tree
// and never cross a mount. Files named mountpoint mount and unmount in the mount namespace of this process. atomicwriter.go writes
// files atomically, with the layout of the kubelet's AtomicWriter, and does not collect their content. place.go finds out where the
// OCI runtime mounts what a container has.
package volume
