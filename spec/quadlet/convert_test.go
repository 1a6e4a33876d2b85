package quadlet

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/spec"
)

// testHost has values that no host has, so that each specifier is seen.
var testHost = Host{
	Home: "/home/ada", User: "ada", UID: "1001", Group: "staff", GID: "1002", Shell: "/bin/zsh",
	Runtime: "/run/user/1001", State: "/home/ada/state", Cache: "/home/ada/cache", Log: "/home/ada/log", Config: "/home/ada/config",
	Hostname: "box.example.org", MachineID: "0123456789abcdef0123456789abcdef", Kernel: "6.12.1",
}

// write writes the files of an archive, and returns their directory.
func write(t *testing.T, archive string) string {
	t.Helper()
	directory := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		writeFile(t, filepath.Join(directory, f.Name), string(f.Data))
	}
	return directory
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pods converts a directory, and parses the pod files.
func pods(t *testing.T, directory string, o spec.Options) (map[string]*spec.Pod, spec.Problems) {
	t.Helper()
	list, problems := Convert([]string{directory}, &testHost, o, false)
	for i := range problems {
		problems[i].File = strings.TrimPrefix(problems[i].File, directory+"/")
	}
	all := map[string]*spec.Pod{}
	for _, p := range list {
		pod, invalid := spec.Parse(filepath.Join(directory, p.Name+".toml"), p.Text)
		if pod == nil {
			t.Fatalf("the pod file is invalid: %v\n%s", invalid, p.Text)
		}
		all[p.Name] = pod
	}
	return all, problems
}

// text returns the pod file of a .container unit with lines in [Container], and the problems.
func textOf(t *testing.T, lines string, o spec.Options) (string, string) {
	t.Helper()
	unit := "[Container]\nImage=web:1\n" + lines + "\n"
	directory := write(t, "-- web.container --\n"+unit+"-- data.volume --\n[Volume]\n-- app.network --\n[Network]\n-- base.image --\n"+
		"[Image]\nImage=quay.io/base:2\n-- made.build --\n[Build]\nImageTag=made\n")
	list, problems := Convert([]string{
		filepath.Join(directory, "web.container"), filepath.Join(directory, "data.volume"),
		filepath.Join(directory, "app.network"), filepath.Join(directory, "base.image"),
	}, &testHost, o, false)
	report := strings.ReplaceAll(problems.Error(), directory+"/", "")
	if len(list) == 0 {
		return "", report
	}
	return strings.ReplaceAll(string(list[0].Text), directory, "/units"), report
}

// TestKeys has for each key of containers what it becomes, as expressions for the pod file and for the problems; both may be empty.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ lines, want, problem string }{
		{"Image=base.image", `image = "quay.io/base:2"`, ""},
		{"Image=made.build", "", `^web.container:3:1: Container.Image: not supported: images are not built$`},
		{"Image=gone.image", "", `unit "gone.image" is missing`},
		{"Image=docker://quay.io/a/b:1", `image = "quay.io/a/b:1"`, ""},
		{"Image=oci-archive:/a.tar", "", `images of oci-archive: are not in a registry`},
		{"Image=nginx", `imagePullPolicy = "IfNotPresent"`, ""},
		{"Image=localhost/web:1", `image = "localhost/web:1"`, `ignored: images in the storage of Podman`},
		{"Pull=newer", `imagePullPolicy = "Always"`, ""},
		{"Pull=sometimes", "", `must be always, missing, never or newer`},
		{"AddCapability=CAP_NET_ADMIN sys_time", `add = \["NET_ADMIN", "SYS_TIME"\]`, ""},
		{"DropCapability=all", `drop = \["ALL"\]`, ""},
		{"DropCapability=all\nDropCapability=\nDropCapability=CAP_CHOWN", `drop = \["CHOWN"\]`, ""},
		{"AddDevice=/dev/dri", `devices = \[\{ path = "/dev/dri" \}\]`, ""},
		{
			"AddDevice=-/dev/a:/dev/b:r",
			`devices = \[\{ path = "/dev/a", containerPath = "/dev/b", permissions = "r", optional = true \}\]`, "",
		},
		{"AddDevice=/dev/a:rw /dev/b:/dev/b:rwm", `devices = \[\{ path = "/dev/a", permissions = "rw" \}, \{ path = "/dev/b" \}\]`, ""},
		{"AddDevice=nvidia.com/gpu=all", `devices = \[\{ cdi = "nvidia.com/gpu=all" \}\]`, ""},
		{"AddDevice=-vendor.com/class=0:1", `devices = \[\{ cdi = "vendor.com/class=0:1", optional = true \}\]`, ""},
		{"AddDevice=vendor.com/class", "", `Container.AddDevice: lost: devices have an absolute path or a CDI name`},
		{"AddDevice=/dev/a:/srv/a", "", `Container.AddDevice: lost: the path of a device in the container is below /dev`},
		{"AddDevice=/dev/a:/dev/b:r:x", "", `must be PATH\[:PATH\[:PERMISSIONS\]\]`},
		{"Annotation=a=b \"c.d/e=f g\"", `annotations = \{ a = "b", "c.d/e" = "f g" \}`, ""},
		{"Annotation=\"<=1\"", `image`, `ignored: "<" is no name of an annotation`},
		{"AppArmor=unconfined", `appArmorProfile.type = "Unconfined"`, ""},
		{"AppArmor=web", `localhostProfile = "web"`, ""},
		{"AutoUpdate=registry", `image`, `Container.AutoUpdate: ignored: images are not updated by themselves`},
		{"CgroupsMode=split", `image`, `CgroupsMode: ignored`},
		{"ContainerName=Web_Site", `name = "web-site"`, `ignored: the name is "web-site" here`},
		{"ContainerName=___", "", `none of the characters a-z and 0-9`},
		{"ContainersConfModule=/etc/x.conf", `image`, `ignored: there is no Podman`},
		{"DNS=10.0.0.1\nDNS=10.0.0.2", `(?s)dnsPolicy = "None".*nameservers = \["10.0.0.1", "10.0.0.2"\]`, ""},
		{"DNS=none", "", `lost: pods have a resolv.conf`},
		{"DNSOption=ndots:1\nDNSOption=edns0", `options = \[\{ name = "ndots", value = "1" \}, \{ name = "edns0" \}\]`, ""},
		{"DNSSearch=a.example\nDNSSearch=.", `searches = \["a.example"\]`, ""},
		{"Entrypoint=/run.sh", `command = \["/run.sh"\]`, ""},
		{`Entrypoint=["/a b","-c"]`, `command = \["/a b", "-c"\]`, ""},
		{`Entrypoint=["/a`, "", `array of strings in JSON`},
		{`Environment=A=1 "B=x y" 'C=$(HOME)'` + "\nEnvironment=A=2", `(?s)value = "2".*value = "x y".*value = "\$\$\(HOME\)"`, ""},
		{"Environment=HOME", "", `lost: containers do not get the variable HOME of the host`},
		{"Environment=\"A=1", "", `a quote is not closed`},
		{"EnvironmentFile=app.env\nEnvironmentFile=%h/b.env", `(?s)envFile = "/units/app.env".*envFile = "/home/ada/b.env"`, ""},
		{"EnvironmentFile=-app.env", "", `lost: the file must exist`},
		{"EnvironmentHost=true", "", `lost: containers do not get the variables of the host`},
		{"EnvironmentHost=no", `image`, ""},
		{`Exec=sh -c "echo $$HOME $(id) %%" 'a b' c\x20d`, `args = \["sh", "-c", "echo \$HOME \$\$\(id\) %", "a b", "c d"\]`, ""},
		{"Exec=a ${X} $Y\n[Service]\nEnvironment=X=1 \"Y=2 3\"", `args = \["a", "1", "2", "3"\]`, ""},
		{"Exec=a ${X}", "", `lost: systemd replaces \$\{X\} by a variable`},
		{"Exec=a $X", "", `lost: systemd replaces \$X by a variable`},
		{"ExposeHostPort=50-52", `containerPort = 50 \}, \{ containerPort = 51 \}, \{ containerPort = 52`, ""},
		{"GIDMap=0:10000:10", "", `lost: the mapping of IDs`},
		{"GlobalArgs=--log-level=debug", `image`, `ignored: there is no Podman`},
		{"User=1000\nGroup=50", `securityContext = \{ runAsUser = 1000, runAsGroup = 50 \}`, ""},
		{"User=7:8", `runAsUser = 7, runAsGroup = 8`, ""},
		{"User=root", `runAsUser = 0`, ""},
		{"User=bin", "", `lost: the user "bin" is not looked up`},
		{"Group=bin", "", `lost: the group "bin" is not looked up`},
		{"GroupAdd=44\nGroupAdd=45", `supplementalGroups = \[44, 45\]`, ""},
		{"GroupAdd=keep-groups", "", `lost: containers do not keep the groups`},
		{"GroupAdd=video", "", `lost: the group "video"`},
		{"HealthCmd=curl -f http://localhost/", `readinessProbe.exec.command = \["sh", "-c", "curl -f http://localhost/"\]`, ""},
		{`HealthCmd=["pg_isready","-q"]`, `readinessProbe.exec.command = \["pg_isready", "-q"\]`, ""},
		{"HealthCmd=CMD pg_isready -q", `readinessProbe.exec.command = \["pg_isready", "-q"\]`, ""},
		{"HealthCmd=CMD-SHELL pg_isready || exit 1", `command = \["sh", "-c", "pg_isready \|\| exit 1"\]`, ""},
		{
			"HealthCmd=true\nHealthInterval=1m5s\nHealthTimeout=2s\nHealthRetries=4",
			`(?s)readinessProbe.periodSeconds = 65\n.*timeoutSeconds = 2\n.*failureThreshold = 4`, "",
		},
		{
			"HealthCmd=true\nHealthOnFailure=kill\nHealthStartPeriod=1m",
			`(?s)livenessProbe.*startupProbe.periodSeconds = 30\n.*Threshold = 5`, "",
		},
		{"HealthCmd=true\nHealthOnFailure=stop", "", `lost: an unhealthy container is not stopped`},
		{"HealthCmd=true\nHealthOnFailure=jump", "", `must be none, kill, restart or stop`},
		{"HealthCmd=true\nHealthInterval=disable", `image`, `ignored: the container has no probe`},
		{"HealthCmd=true\nHealthInterval=soon", "", `must be a time`},
		{"HealthCmd=true\nHealthRetries=x", "", `must be a number`},
		{
			"HealthCmd=true\nHealthStartupCmd=/up\nHealthStartupInterval=2s\nHealthStartupRetries=8\nHealthStartupTimeout=3s",
			`(?s)startupProbe.exec.command = \["sh", "-c", "/up"\].*periodSeconds = 2\n.*timeoutSeconds = 3\n.*failureThreshold = 8`, "",
		},
		{"HealthCmd=true\nHealthStartupCmd=/up\nHealthStartupSuccess=2", "", `lost: a startup probe succeeds`},
		{"HealthLogDestination=/x\nHealthMaxLogCount=1\nHealthMaxLogSize=2", `image`, `HealthLogDestination: ignored: podstead events`},
		{"HostName=shop", `hostname = "shop"`, ""},
		{"HostName=Shop.example.org", `(?s)hostname = "shop"\nhostnameOverride = "shop.example.org"`, ""},
		{"HostName=shop.example.org\nNetwork=host", `hostname = "shop"`, `ignored: the hostname is "shop" here`},
		{"HttpProxy=false", `image`, ""},
		{"HttpProxy=true", `image`, `ignored`},
		{"IP=10.0.0.7", "", `lost: pods have the addresses`},
		{"IP6=fd00::7", "", `lost: pods have the addresses`},
		{
			`Label=app=web "note=a b" traefik.http.routers.x.rule=Host(1)`,
			`(?s)labels.app = "web"\nannotations = \{ note = "a b", "traefik.http.routers.x.rule" = "Host\(1\)" \}`, "",
		},
		{"LogDriver=journald", `"podstead.io/log-driver" = "journald"`, ""},
		{"LogDriver=none", `image`, `ignored: logs are kept`},
		{"LogOpt=max-size=1m", `image`, `ignored: the host limits`},
		{"Mask=/proc/a", "", `lost: paths are not masked`},
		{"Memory=20g", `limits.memory = "20Gi"`, ""},
		{"Memory=lots", "", `must be a size`},
		{"Mount=type=bind,source=/srv,target=/data,ro", `(?s)mountPath = "/data", readOnly = true.*hostPath.path = "/srv"`, ""},
		{"Mount=type=volume,source=data.volume,dst=/data", `claimName = "data"`, `ignored: volumes start empty`},
		{"Mount=type=tmpfs,dst=/t,tmpfs-size=64m", `emptyDir = \{ medium = "Memory", sizeLimit = "64Mi" \}`, ""},
		{"Mount=type=image,source=base.image,dst=/i", `image.reference = "quay.io/base:2"`, ""},
		{"Mount=type=glob,source=/x*,dst=/i", "", `lost: mounts of the type "glob"`},
		{"Mount=type=bind,source=data,dst=/i", "", `source= must be a path`},
		{"Mount=type=bind,source=/x", "", `target= must be an absolute path`},
		{"Network=host", `hostNetwork = true`, ""},
		{"Network=none", "", `lost: the pod has a network`},
		{"Network=app.network", `hostname = "systemd-web"`, `ignored: all pods of a host share one network`},
		{"Network=app.network:ip=10.0.0.7", "", `lost: pods have the addresses`},
		{"Network=app.network:alias=shop", `hostname = "shop"`, `ignored: all pods of a host share one network`},
		{"Network=container:x", "", `lost: a pod does not join`},
		{"Network=gone.container", "", `unit "gone.container" is missing`},
		{"Network=pasta:-T,80", `image`, `ignored: pods are connected by a bridge`},
		{"NetworkAlias=shop", `hostname = "shop"`, ""},
		{"NetworkAlias=shop\nNetworkAlias=the_store\nNetworkAlias=the_store", `annotations."podstead.io/aliases" = "the_store"`, ""},
		{"NetworkAlias=shop.example", "", `lost: other pods do not reach it by this name`},
		{
			"Network=back.network\nContainerName=My_App", `annotations."podstead.io/aliases" = "My_App"`,
			`ignored: the name is "my-app" here`,
		},
		{"NoNewPrivileges=true", `allowPrivilegeEscalation = false`, ""},
		{"NoNewPrivileges=perhaps", "", `must be true or false`},
		{"HealthCmd=true\nHealthInterval=10s\nNotify=healthy\n[Service]\nTimeoutStartSec=300", `startupProbe.failureThreshold = 30`, ""},
		{"Notify=healthy", "", `lost: the container has no health check`},
		{"Notify=true", "", `lost: messages of sd_notify`},
		{"Notify=no", `image`, ""},
		{"PidsLimit=100", `pidsLimit = 100`, ""},
		{"PidsLimit=some", "", `PidsLimit: invalid value: "some": must be a number`},
		{"PidsLimit=-1", `image`, ""},
		{"Pod=gone.pod", "", `unit "gone.pod" is missing`},
		{"PodmanArgs=--cpus=1.5 --privileged -p 80:81 -eA=b --tty", `(?s)tty = true`, ""},
		{"PodmanArgs=--cpus=1.5", `limits.cpu = "1500m"`, ""},
		{"PodmanArgs=--privileged", `privileged = true`, ""},
		{"PodmanArgs=--env \"A=x y\" -it", `env.* = .*A.*x y`, ""},
		{"PodmanArgs=--memory-reservation 1g --ipc=host --pid host", `(?s)hostPID = true.*hostIPC = true.*requests.memory = "1Gi"`, ""},
		{
			"PodmanArgs=--security-opt=no-new-privileges --security-opt seccomp=unconfined --security-opt label=disable",
			`(?s)allowPrivilegeEscalation = false.*seccompProfile.type = "Unconfined"`, `ignored: SELinux`,
		},
		{"PodmanArgs=--security-opt apparmor=unconfined", `appArmorProfile`, ""},
		{"PodmanArgs=--security-opt mask=/a", "", `lost: the option --security-opt=mask=/a`},
		{"PodmanArgs=--gpus all --rm", "", `lost: the option --gpus of Podman is not supported`},
		{"PodmanArgs=--ulimit nofile=1 --pids-limit=5 --init", `(?s)pidsLimit = 5.*ulimits = .*nofile.*\ninit = true`, ""},
		{"PodmanArgs=--memory", "", `the option --memory has no value`},
		{"PodmanArgs=nginx", "", `"nginx" is no option`},
		{"PodmanArgs=--cpus=x", "", `must be a number of CPUs`},
		{"PodmanArgs=--ipc=x", "", `--ipc=x`},
		{"PodmanArgs=--pid=x", "", `--pid=x`},
		{"PublishPort=8080:80\nPublishPort=127.0.0.1:53:53/udp\nPublishPort=[::]:90:90", `hostIP = "127.0.0.1", protocol = "UDP"`, ""},
		{"PublishPort=50-51:60-61", `containerPort = 61, hostPort = 51`, ""},
		{"PublishPort=80", "", `lost: the port of the host is not chosen`},
		{"PublishPort=50-51:60-63", "", `the same length`},
		{"PublishPort=a:b", "", `must be \[\[IP:\]\[HOST\]:\]CONTAINER`},
		{"PublishPort=1-9999:1-9999", "", `more than 256 ports`},
		{"ReadOnly=true", `(?s)mountPath = "/run".*mountPath = "/var/tmp".*readOnlyRootFilesystem = true`, ""},
		{"ReadOnly=true\nReadOnlyTmpfs=false", `readOnlyRootFilesystem = true\n$`, ""},
		{"ReloadCmd=nginx -s reload", `image`, `ignored: there is no systemctl reload`},
		{"ReloadSignal=HUP", `image`, `ignored: there is no systemctl reload`},
		{"Retry=3\nRetryDelay=5s", `image`, `ignored: pulls are retried`},
		{"Rootfs=/x", "", `not supported: containers have images`},
		{"RunInit=true", `init = true`, ""},
		{"RunInit=false", `image = "web:1"\n$`, ""},
		{"SeccompProfile=unconfined", `seccompProfile.type = "Unconfined"`, ""},
		{"SeccompProfile=/a.json", "", `lost: profiles are in a directory`},
		{
			"Secret=db_password",
			`(?s)mountPath = "/run/secrets/db_password", subPath = "db_password".*secretName = "db-password"`, `is not copied`,
		},
		{"Secret=db,type=env,target=PW", `env.*PW.*secretKeyRef = \{ name = "db", key = "db" \}|secretKeyRef`, `is not copied`},
		{"Secret=db,target=/etc/db,mode=0400", `(?s)mountPath = "/etc/db".*defaultMode = 0o400`, `is not copied`},
		{"Secret=db,uid=5", "", `lost: files of secrets belong to root`},
		{"Secret=db,mode=9", "", `must be an octal number`},
		{"Secret=db,type=x", "", `type= must be mount or env`},
		{"Secret=db,colour=x", "", `unknown option "colour"`},
		{
			"SecurityLabelDisable=true\nSecurityLabelFileType=a\nSecurityLabelLevel=b\nSecurityLabelNested=true\nSecurityLabelType=c",
			`image`, `ignored: SELinux`,
		},
		{"ServiceName=shop", `image`, ""},
		{"ShmSize=100m", `shmSize = "100Mi"`, ""},
		{"ShmSize=0", "", `ShmSize: lost: /dev/shm has a limit`},
		{"StartWithPod=false", "", `lost: all containers of a pod start`},
		{"StopSignal=2", `lifecycle.stopSignal = "SIGINT"`, ""},
		{"StopSignal=quit", `stopSignal = "SIGQUIT"`, ""},
		{"StopTimeout=20", `terminationGracePeriodSeconds = 20`, ""},
		{"StopTimeout=20\n[Service]\nTimeoutStopSec=5", `terminationGracePeriodSeconds = 5`, ""},
		{"[Service]\nTimeoutSec=1min 10s", `terminationGracePeriodSeconds = 70`, ""},
		{"[Service]\nTimeoutStopSec=infinity", "", `lost: a pod does not stop without a limit`},
		{"", `terminationGracePeriodSeconds = 10`, ""},
		{"SubGIDMap=a\nSubUIDMap=b\nUIDMap=0:1:2", "", `SubUIDMap: lost`},
		{"RemapUsers=auto\nRemapUid=1\nRemapGid=1\nRemapUidSize=1", "", `RemapUidSize: lost`},
		{"Sysctl=net.core.somaxconn=1024 net.ipv4.ip_unprivileged_port_start=0", `sysctls`, ""},
		{"Timezone=local", `hostPath.path = "/etc/localtime"`, ""},
		{"Timezone=Europe/Rome", `hostPath.path = "/usr/share/zoneinfo/Europe/Rome"`, ""},
		{"Timezone=../../etc/shadow", "", `must be a time zone`},
		{"Tmpfs=/work:size=1g,mode=1777", `(?s)mountPath = "/work".*sizeLimit = "1Gi", mode = 0o1777`, ""},
		{"Tmpfs=/work:mode=0700", `(?s)mountPath = "/work".*mode = 0o700`, ""},
		{"Tmpfs=/work:mode=2777", "", `the mode "2777" is not read: it must be an octal number of at most 1777`},
		{"Mount=type=bind,source=/srv,target=/srv,mode=0700", "", `mode=0700`},
		{"Tmpfs=work", "", `must be an absolute path`},
		{"VolatileTmp=true", `mountPath = "/tmp"`, ""},
		{
			"Ulimit=nofile=1:2\nUlimit=core=-1",
			`ulimits = \[\{ name = "nofile", soft = 1, hard = 2 \}, \{ name = "core", soft = -1 \}\]`, "",
		},
		{"Ulimit=nofile", "", `Ulimit: invalid value: "nofile": must be "NAME=LIMIT"`},
		{"Ulimit=host", "", `Ulimit: lost: the limits of a container are not those of the host`},
		{"Unmask=ALL", "", `Unmask: lost`},
		{"UserNS=auto", `hostUsers = false`, ""},
		{"UserNS=host", `image`, ""},
		{
			"UserNS=keep-id:uid=200,gid=200", `(?s)keepID = 200.*securityContext = \{ runAsUser = 200, runAsGroup = 200 \}`, "",
		},
		{"UserNS=keep-id:uid=200", `(?s)keepID = 200.*runAsGroup = 200`, `UserNS: the group in the containers is 200`},
		{"UserNS=keep-id:uid=200,gid=200\nUser=7", `(?s)keepID = 200.*securityContext.runAsUser = 7\n`, ""},
		{"UserNS=keep-id:uid=200,gid=200\nUser=7:8", `(?s)keepID = 200.*securityContext = \{ runAsUser = 7, runAsGroup = 8 \}`, ""},
		{"UserNS=keep-id", "", `lost: the mapping of IDs`},
		{"UserNS=keep-id:uid=200,gid=201", "", `lost: the mapping of IDs`},
		{"UserNS=keep-id:gid=200", "", `lost: the mapping of IDs`},
		{"UserNS=keep-id:uid=0", "", `lost: the mapping of IDs`},
		{"UserNS=keep-id:uid=65536", "", `lost: the mapping of IDs`},
		{"UserNS=keep-id:size=200", "", `lost: the mapping of IDs`},
		{"Volume=/srv/a:/a:ro,Z", `(?s)mountPath = "/a", readOnly = true.*hostPath.path = "/srv/a"`, ""},
		{"Volume=./site:/a", `hostPath.path = "/units/site"`, ""},
		{"Volume=%h/site:/a", `hostPath.path = "/home/ada/site"`, ""},
		{"Volume=data.volume:/a", `claimName = "data"`, `ignored: volumes start empty`},
		{"Volume=gone.volume:/a", `claimName = "gone"`, `ignored: unit "gone.volume" is not among`},
		{"Volume=My_Data:/a", `claimName = "my-data"`, `ignored`},
		{"Volume=/a", `emptyDir = \{\}`, ""},
		{"Volume=data:/a:U", "", `lost: the owner of files`},
		{"Volume=/x:/a:O", "", `lost: mount options cannot be chosen: O`},
		{"Volume=/x:/a:rslave,noexec", `mountPropagation = "HostToContainer"`, `ignored: mount options cannot be chosen: noexec`},
		{"Volume=/x:a", "", `with an absolute path`},
		{"Volume=a/b:/a", "", `must be a path, a unit or the name of a volume`},
		{"WorkingDir=/srv", `workingDir = "/srv"`, ""},
		{"Ports=1", "", `unknown key: podman-systemd.unit\(5\) does not have it`},
		{"publishport=1:1", "", `unknown key`},
		{"[Volume]\nCopy=true", "", `section \[Volume\] does not belong`},
		{"[X-Mine]\nA=b", `image`, ""},
		{"[Mine]\nA=b", "", `lost: section \[Mine\] is not read`},
		{"[Quadlet]\nDefaultDependencies=false", `image`, ""},

		{"[Service]\nRestart=always", `restartPolicy = "Always"`, ""},
		{"[Service]\nRestart=on-failure", `restartPolicy = "OnFailure"`, ""},
		{"[Service]\nRestart=on-abort", `restartPolicy = "OnFailure"`, `ignored: containers restart after each failure`},
		{"[Service]\nRestart=on-success", "", `lost: containers do not restart only after a success`},
		{"[Service]\nRestart=maybe", "", `must be no, always or on-failure`},
		{"[Service]\nRestart=no", `restartPolicy = "Never"`, ""},
		{"", `restartPolicy = "Never"`, ""},
		{"[Service]\nRestart=always\nRestartSec=5", `restartBackoff = \{ initialSeconds = 5, maxSeconds = 5, factor = 1 \}`, ""},
		{
			"[Service]\nRestart=always\nRestartSec=5\nRestartMaxDelaySec=1min\nRestartSteps=3",
			`initialSeconds = 5, maxSeconds = 60`, `RestartSteps: ignored`,
		},
		{"[Service]\nRestart=always\nRestartSec=100ms", `initialSeconds = 0.1`, ""},
		{"[Service]\nRestartSec=x", "", `must be a time`},
		{"[Service]\nRuntimeMaxSec=1h", `activeDeadlineSeconds = 3600`, ""},
		{"[Service]\nRestart=always\nRuntimeMaxSec=1h", "", `lost: containers are not restarted after a time`},
		{"[Service]\nType=oneshot\nRemainAfterExit=yes", `restartPolicy = "Never"`, ""},
		{"[Service]\nType=weird", "", `Quadlet sets it to notify or oneshot`},
		{"[Service]\nExecStartPre=/bin/true", "", `Service.ExecStartPre: lost: commands of the host`},
		{"[Service]\nExecStart=/bin/true", "", `not supported: Quadlet writes it`},
		{"[Service]\nExecReload=/bin/true", `image`, `ignored: there is no systemctl reload`},
		{"[Service]\nEnvironmentFile=/a", "", `lost: variables of the service`},
		{"[Service]\nMemoryMax=1G\nCPUQuota=50%", `(?s)limits = \{ cpu = "500m", memory = "1Gi" \}`, ""},
		{"[Service]\nCPUQuota=half", "", `must be a percentage`},
		{"[Service]\nTasksMax=5", `pidsLimit = 5`, ""},
		{"[Service]\nTasksMax=5%", "", `TasksMax: lost`},
		{"[Service]\nTasksMax=infinity", `image`, ""},
		{"[Service]\nSlice=a.slice", `image`, `ignored: it is a setting of the process of Podman`},
		{"[Service]\nIPAddressDeny=any", "", `lost: it is a setting of the process of Podman`},
		{"Volume=%d/pw:/run/pw:ro\n[Service]\nLoadCredential=pw:/etc/pw", `hostPath.path = "/etc/pw"`, ""},
		{"EnvironmentFile=${CREDENTIALS_DIRECTORY}/env\n[Service]\nLoadCredential=env:/etc/env", `envFile = "/etc/env"`, ""},
		{"Volume=%d/pw:/run/pw:ro", "", `lost: the credential "pw" has no file`},
		{
			"Volume=%d/pw:/run/pw:ro\n[Service]\nLoadCredentialEncrypted=pw:/etc/pw.cred",
			`(?s)volumeMounts = .*subPath = "pw", readOnly = true.*secretName = "pw".*secrets.*` +
				`credential = "pw".*credentialFile = "/etc/pw.cred"`, "",
		},
		{
			"EnvironmentFile=%d/pw\n[Service]\nLoadCredentialEncrypted=pw:/etc/pw.cred", "",
			`EnvironmentFile: lost: the credential "pw" is decrypted for volumes only`,
		},
		{"Volume=%d/pw:/run/pw:ro\n[Service]\nLoadCredentialEncrypted=pw", "", `lost: the credential "pw" has no file`},

		{"[Unit]\nAfter=network-online.target\nWants=network-online.target", `waitFor = \["network-online"\]`, ""},
		{
			"[Unit]\nAfter=time-sync.target local-fs.target mnt-my\\x2ddata.mount dev-ttyUSB0.device",
			`waitFor = \["time-synced", "mount:/mnt/my-data", "path:/dev/ttyUSB0"\]`, "",
		},
		{"[Unit]\nAfter=other.service", `image`, `ignored: unit "other.service" is not among`},
		{"[Unit]\nRequires=other.service", `waitFor = \["pod:other:ready"\]`, `ignored: unit "other.service" is not among`},
		{"[Unit]\nRequires=docker.socket", "", `lost: unit "docker.socket"`},
		{"[Unit]\nAfter=other.container", "", `unit "other.container" is missing`},
		{"[Unit]\nRequiresMountsFor=/srv/data", `waitFor = \["path:/srv/data"\]`, ""},
		{"[Unit]\nConditionPathExists=/etc/a\nAssertPathIsMountPoint=/mnt", `waitFor = \["path:/etc/a", "mount:/mnt"\]`, ""},
		{"[Unit]\nConditionPathExists=!/etc/a", "", `lost: a pod waits only for what exists`},
		{"[Unit]\nConditionPathExists=a", "", `must be an absolute path`},
		{"[Unit]\nConditionACPower=true", "", `lost: the pod is no unit of systemd`},
		{"[Unit]\nOnFailure=mail@%n.service", "", `lost: no units start when a pod fails`},
		{"[Unit]\nDescription=a\nDocumentation=b\nStartLimitBurst=3\nStartLimitIntervalSec=10", `image`, `StartLimitBurst: ignored`},
		{"[Install]\nWantedBy=default.target multi-user.target", `image`, ""},
		{"[Install]\nAlias=x.service", `image`, `ignored: pods have one name`},
		{"[Install]\nWantBy=x", "", `Install.WantBy: unknown key`},
	} {
		text, report := textOf(t, test.lines, spec.Options{})
		if test.want == "" != (text == "") || !regexp.MustCompile(test.want).MatchString(text) {
			t.Errorf("%q: got\n%s\n%s\nwant %s", test.lines, text, report, test.want)
		}
		if test.problem == "" && report != "" || !regexp.MustCompile("(?m)"+test.problem).MatchString(report) {
			t.Errorf("%q: got the problems\n%s\nwant %s", test.lines, report, test.problem)
		}
	}
}

// TestSpecifiers has each specifier.
func TestSpecifiers(t *testing.T) {
	t.Parallel()
	directory := write(t, "-- my-shop@a-b.container --\n[Container]\n"+
		"Image=x:1\nExec=%n %N %p %P %i %I %j %J %f %h %u %U %g %G %s %t %S %C %L %E "+
		"%T %V %H %l %m %v %a %d %%\nLabel=y=%y\n")
	all, problems := pods(t, directory, spec.Options{})
	pod := all["my-shop-a-b"]
	if pod == nil {
		t.Fatal(problems)
	}
	got := strings.Join(pod.Containers[0].Args, " ")
	want := "my-shop@a-b.service my-shop@a-b my-shop my/shop a-b a/b shop shop /a/b /home/ada ada 1001 staff 1002 " +
		"/bin/zsh /run/user/1001 " +
		"/home/ada/state /home/ada/cache /home/ada/log /home/ada/config /tmp /var/tmp box.example.org box " +
		testHost.MachineID + " 6.12.1 " +
		architecture() + " /run/credentials/my-shop@a-b.service %"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if pod.Annotations["y"] != filepath.Join(directory, "my-shop@a-b.container") {
		t.Errorf("%%y: got %q", pod.Annotations["y"])
	}
	for text, want := range map[string]string{
		"%b": "changes with each boot", "%X": "unknown specifier %X", "%": "ends with %",
	} {
		if _, report := textOf(t, "Exec=a "+text, spec.Options{}); !strings.Contains(report, want) {
			t.Errorf("%s: got %s", text, report)
		}
	}
}
