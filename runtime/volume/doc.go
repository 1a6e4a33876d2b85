// Package volume makes the volumes of a pod and says how a container is shown them, with the kubelet's rules.
//
// It owns what lies in three folders, and the mounts in the first two:
//
//	<DataDir>/<uid>/volumes/<volume>              an emptyDir on disk
//	<RunDir>/<uid>/memory/<volume>                an emptyDir in memory, a tmpfs of its own
//	<RunDir>/<uid>/files/<volume>                 what is written from config maps, secrets and fields: one tmpfs a pod
//	<RunDir>/<uid>/subpaths/<run>/<number>        the bind mount of one subPath of one run of a container
//	<ClaimsDir>/<claim>                           a persistent volume; it outlives every pod
//
// All of it is found again after a crash, from what is there and from the kernel's list of mounts; the package keeps no
// state of its own. Nothing that a container wrote is trusted: no path below a volume is resolved without openat2 (a
// symbolic link cannot lead out, at any moment), nothing is removed or given another owner across a mount or through a
// link, and a mount is taken off its peers before it is unmounted.
//
// It must not decide when a volume is made or updated, nor pull images or read config maps: its caller does, and gives
// [Values] and the folders of images. Mounts are made in the mount namespace of this process, so that must be the
// machine's.
package volume
