# Becomes process 1 of new namespaces: joins a cgroup, mounts the root file system and executes systemd.
# Arguments: the directory of the machine, the name of its cgroups, the repository, which is mounted at /src.
set -e
if [ -z "$joined" ]; then # before the cgroup namespace exists, whose root is then this cgroup
	while read -r _ parent type _; do
		case $type in cgroup | cgroup2) ;; *) continue ;; esac
		mkdir -p "$parent/$2"
		for file in cpuset.cpus cpuset.mems; do # empty in a new cgroup v1
			[ ! -e "$parent/$file" ] || cat "$parent/$file" >"$parent/$2/$file"
		done
		echo 0 >"$parent/$2/cgroup.procs"
	done </proc/self/mounts
	# Its uptime starts at 0, as after any boot: reboots are limited by uptime, and this host can have been up for days.
	clocks=$(awk 'NR == FNR { offset[$1] = $2; next } { up = int($1); for (c in offset) printf " --%s %d", c, offset[c] - up }' \
		/proc/self/timens_offsets /proc/uptime)
	joined=1 exec unshare --cgroup --time $clocks sh "$0" "$@"
fi
root=$1/root
mount --make-rprivate /
cgroups=$(awk '$3 == "cgroup" || $3 == "cgroup2" { n = split($2, path, "/"); print $3, path[n], $4 }' /proc/self/mounts)
mount -o loop,noatime "$1/disk" "$root"
# A kernel refuses an overlay on two others: containers have theirs in /var, outside of this one.
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$root/.usr/upper,workdir=$root/.usr/work" "$root/usr"
mount --bind -o ro "$3" "$root/src"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"

mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/net"
for device in null zero full random urandom tty net/tun; do
	[ ! -e "/dev/$device" ] || { : >"$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; }
done
: >"$root/dev/kmsg"
mount --bind /dev/null "$root/dev/kmsg"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for fd in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${fd%:*}" "$root/dev/${fd#*:}"; done

if [ "$(echo "$cgroups" | wc -l)" = 1 ]; then
	mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"
else
	mount -t tmpfs -o mode=755,nosuid,nodev,noexec tmpfs "$root/sys/fs/cgroup"
	echo "$cgroups" | while read -r type name options; do
		mkdir "$root/sys/fs/cgroup/$name"
		[ "$type" = cgroup2 ] && options=rw || options=$(echo "$options" | sed 's/rw,relatime,//; s/^name=/none,name=/')
		mount -t "$type" -o "$options" "$type" "$root/sys/fs/cgroup/$name"
	done
fi

# The kernel is shared: its settings are read-only, except for those of the network namespace.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,ro "$root/proc/sys"
mount -o remount,bind,rw "$root/proc/sys/net"
[ ! -e "$root/proc/sysrq-trigger" ] || mount --bind /dev/null "$root/proc/sysrq-trigger"
cat /proc/sys/kernel/random/uuid >"$root/run/boot_id" # a boot of its own
mount --bind "$root/run/boot_id" "$root/proc/sys/kernel/random/boot_id"
hostname podstead-test
ip link set lo up
cd "$root"
pivot_root . .old
umount -l /.old
cd /
exec env -i container=podstead-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin LANG=C.UTF-8 \
	setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-syslog,-mac_admin,-wake_alarm,-block_suspend \
	/usr/lib/systemd/systemd --unit=multi-user.target --show-status=true
