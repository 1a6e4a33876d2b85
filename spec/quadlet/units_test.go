package quadlet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/spec"
)

// TestApplication converts an application of a pod with two containers, a database beside it, and what they use.
func TestApplication(t *testing.T) {
	t.Parallel()
	directory := write(t, `
-- shop.pod --
[Pod]
PodName=shop
PublishPort=8080:80
Volume=logs.volume:/var/log/shop
[Service]
Restart=always
[Install]
WantedBy=multi-user.target
-- app.container --
[Unit]
Requires=db.service
After=db.service
[Container]
Pod=shop.pod
Image=app:1
-- proxy.container --
[Unit]
After=app.container
[Container]
Pod=shop.pod
Image=base.image
-- db.container --
[Container]
ContainerName=postgres
Image=postgres:17
Volume=pgdata.volume:/var/lib/postgresql/data
Network=shop.network
HealthCmd=pg_isready
Notify=healthy
[Service]
Restart=on-failure
TimeoutStopSec=1min
-- migrate.container --
[Unit]
After=db.service
Before=shop-pod.service
[Container]
Image=app:1
Exec=migrate
[Service]
Type=oneshot
-- pgdata.volume --
[Volume]
VolumeName=pg
-- logs.volume --
[Volume]
-- shop.network --
[Network]
Subnet=10.9.0.0/24
-- base.image --
[Image]
Image=quay.io/proxy:2
Policy=always
`)
	all, problems := pods(t, directory, spec.Options{})
	if len(all) != 3 {
		t.Fatalf("%d pods: %v", len(all), problems)
	}
	shop := all["shop"]
	if len(shop.InitContainers) != 1 || shop.InitContainers[0].Name != "app" || shop.InitContainers[0].RestartPolicy != spec.RestartAlways {
		t.Errorf("app, after which proxy starts, is no sidecar: %+v", shop.InitContainers)
	}
	proxy := shop.Containers[0]
	if proxy.Name != "proxy" || proxy.Image != "quay.io/proxy:2" || proxy.ImagePullPolicy != spec.PullAlways {
		t.Errorf("got the container %+v", proxy)
	}
	wait := slices.Clone(shop.WaitFor)
	slices.Sort(wait)
	if want := []string{"pod:migrate:succeeded", "pod:postgres:ready"}; !cmp.Equal(wait, want) {
		t.Errorf("shop waits for %q, want %q", wait, want)
	}
	if got := shop.InitContainers[0].Ports; len(got) != 1 || got[0].HostPort != 8080 {
		t.Errorf("ports: got %+v", got)
	}
	for _, c := range []spec.Container{shop.InitContainers[0], proxy} {
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != "/var/log/shop" {
			t.Errorf("%s: mounts: got %+v", c.Name, c.VolumeMounts)
		}
	}
	db := all["postgres"]
	if db.Volumes[0].PersistentVolumeClaim.ClaimName != "pg" || db.TerminationGracePeriodSeconds != 60 ||
		db.RestartPolicy != spec.RestartOnFailure || db.Containers[0].StartupProbe.FailureThreshold != 3 {
		t.Errorf("got the database %+v", db)
	}
	if m := all["migrate"]; m.RestartPolicy != spec.RestartNever || !cmp.Equal(m.WaitFor, []string{"pod:postgres:ready"}) {
		t.Errorf("got the migration %+v", m)
	}
}

// TestOrder has orders of units, and what they become: waitFor of pods, or the lists of containers of a pod.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ archive, want string }{
		"an init container": {
			"-- a.pod --\n[Pod]\n-- b.container --\n[Unit]\nAfter=c.service\n[Container]\nImage=i:1\nPod=a.pod\n" +
				"-- c.container --\n[Container]\nImage=i:1\nPod=a.pod\n[Service]\nType=oneshot\n",
			"a: init c(), main b()",
		},
		"policies of containers": {
			"-- a.pod --\n[Pod]\n-- b.container --\n[Container]\nImage=i:1\nPod=a.pod\n[Service]\nRestart=always\n" +
				"-- c.container --\n[Container]\nImage=i:1\nPod=a.pod\n",
			"a: main b(Always), main c()",
		},
		"shared network": {
			"-- b.container --\n[Container]\nImage=i:1\n-- c.container --\n[Container]\nImage=i:1\nNetwork=b.container\n",
			"b: main b(), main c()",
		},
		"networks of each other": {
			"-- b.container --\n[Container]\nImage=i:1\nNetwork=c.container\n" +
				"-- c.container --\n[Container]\nImage=i:1\nNetwork=b.container\n",
			"share the networks of each other",
		},
		"pods wait for each other": {
			"-- b.container --\n[Unit]\nAfter=c.service\n[Container]\nImage=i:1\n" +
				"-- c.container --\n[Unit]\nAfter=b.service\n[Container]\nImage=i:1\n",
			"wait for each other",
		},
		"containers after each other": {
			"-- a.pod --\n[Pod]\n-- b.container --\n[Unit]\nAfter=c.service\n[Container]\nImage=i:1\nPod=a.pod\n" +
				"-- c.container --\n[Unit]\nAfter=b.service\n[Container]\nImage=i:1\nPod=a.pod\n",
			"ordered after each other",
		},
		"a sidecar that does not restart": {
			"-- a.pod --\n[Pod]\n-- b.container --\n[Unit]\nAfter=c.service\n[Container]\nImage=i:1\nPod=a.pod\n" +
				"-- c.container --\n[Container]\nImage=i:1\nPod=a.pod\n",
			`container "c" restarts, since others start after it`,
		},
		"a pod without containers": {"-- a.pod --\n[Pod]\n", "the pod has no containers"},
		"the same name": {
			"-- b.container --\n[Container]\nImage=i:1\nContainerName=x\n-- c.container --\n[Container]\nImage=i:1\nContainerName=x\n",
			`pod "x" is already defined by b.container`,
		},
		"only a volume":           {"-- a.volume --\n[Volume]\n", "the units define no pod"},
		"no section":              {"-- a.container --\n[Unit]\nDescription=x\n", "section [Container] is missing"},
		"no image":                {"-- a.container --\n[Container]\nExec=x\n", "Image= of [Container] is missing"},
		"a build":                 {"-- a.build --\n[Build]\nImageTag=x\n", "not supported: images are not built"},
		"an artifact":             {"-- a.artifact --\n[Artifact]\nArtifact=x\n", "not supported: OCI artifacts"},
		"NFS":                     {nfs("nfs", "host:/x", ""), "not supported: volumes are directories, not file systems that are mounted"},
		"a directory of the host": {nfs("none", "/srv/x", "bind"), "a: main a()"},
		"a volume in memory":      {nfs("tmpfs", "tmpfs", "size=1g"), "a: main a()"},
		"networks are one": {
			"-- a.container --\n[Container]\nImage=i:1\nNetwork=n.network\n-- n.network --\n[Network]\nInternal=true\n",
			"lost: all pods of a host share one",
		},
		"binds to": {
			"-- b.container --\n[Unit]\nBindsTo=c.container\n[Container]\nImage=i:1\n-- c.container --\n[Container]\nImage=i:1\n",
			"b: wait pod:c:ready main b()\nc: main c()",
		},
		"an instance": {
			"-- b@x.container --\n[Container]\nImage=i:1\nExec=%i\n-- c.container --\n[Unit]\nAfter=b@x.service\n[Container]\nImage=i:1\n",
			"b-x: main b-x()\nc: wait pod:b-x:ready main c()",
		},
		"a default instance": {
			"-- b@.container --\n[Container]\nImage=i:1\nExec=%i\n[Install]\nDefaultInstance=y\n", "b-y: main b-y()",
		},
		"a user namespace of one of two containers": {
			"-- a.container --\n[Container]\nPod=p.pod\nImage=i:1\nUserNS=keep-id:uid=5,gid=5\n" +
				"-- b.container --\n[Container]\nPod=p.pod\nImage=i:1\n-- p.pod --\n[Pod]\n",
			"UserNS: lost: the containers of a pod have one user namespace",
		},
		"a template alone": {"-- b@.container --\n[Container]\nImage=i:1\n", "the template has no instance"},
	} {
		all, problems := pods(t, write(t, test.archive), spec.Options{})
		if got := describe(all); got != test.want && (len(all) > 0 || !strings.Contains(problems.Error(), test.want)) {
			t.Errorf("%s: got %q\n%v\nwant %q", name, got, problems, test.want)
		}
	}
}

func nfs(kind, device, options string) string {
	return "-- a.container --\n[Container]\nImage=i:1\nVolume=v.volume:/x\n-- v.volume --\n[Volume]\nType=" + kind + "\nDevice=" + device +
		"\nOptions=" + options + "\n"
}

// describe returns the containers of pods, with their own restart policies.
func describe(all map[string]*spec.Pod) string {
	var lines []string
	for name, p := range all {
		var parts []string
		for _, c := range p.InitContainers {
			parts = append(parts, fmt.Sprintf("init %s(%s)", c.Name, c.RestartPolicy))
		}
		for _, c := range p.Containers {
			parts = append(parts, fmt.Sprintf("main %s(%s)", c.Name, c.RestartPolicy))
		}
		line := name + ": "
		if len(p.WaitFor) > 0 {
			line += "wait " + strings.Join(p.WaitFor, " ") + " "
		}
		lines = append(lines, line+strings.Join(parts, ", "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestDropIns checks which drop-ins are read, and in which order.
func TestDropIns(t *testing.T) {
	t.Parallel()
	directory := write(t, `
-- a-b@x.container --
[Container]
Image=i:1
Environment=A=file
-- container.d/10.conf --
[Container]
Environment=A=1 TOP=1
-- a-.container.d/20.conf --
[Container]
Environment=A=2 DASH=1
-- a-b@.container.d/30.conf --
[Container]
Environment=TEMPLATE=1
-- a-b@x.container.d/20.conf --
[Container]
Environment=A=4 OWN=1
-- a-b@x.container.d/note.txt --
not read
-- pod.d/10.conf --
[Pod]
Label=x=y
`)
	if err := os.Symlink(os.DevNull, filepath.Join(directory, "a-b@x.container.d/30.conf")); err != nil {
		t.Fatal(err)
	}
	all, problems := pods(t, directory, spec.Options{})
	if all["a-b-x"] == nil {
		t.Fatal(problems)
	}
	var got []string
	for _, v := range all["a-b-x"].Containers[0].Env {
		got = append(got, v.Name+"="+v.Value)
	}
	// 20.conf of the instance replaces that of a-.container.d, and the link to /dev/null that of the template.
	if want := []string{"A=4", "TOP=1", "OWN=1"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSealedSecrets: each credential of a pod is one secret, also if two have the same name in units with other files, or names that are
// the same for Kubernetes. A name with a number may be that of another credential.
func TestSealedSecrets(t *testing.T) {
	t.Parallel()
	all, problems := pods(t, write(t, `
-- app.pod --
[Pod]
-- a.container --
[Container]
Image=i:1
Pod=app.pod
Volume=%d/key:/key
Volume=%d/KEY:/KEY
Volume=%d/key-2:/key-2
Volume=%d/key:/again
[Service]
LoadCredentialEncrypted=key:/etc/a
LoadCredentialEncrypted=KEY:/etc/a
LoadCredentialEncrypted=key-2:/etc/a
-- b.container --
[Container]
Image=i:1
Pod=app.pod
Volume=%d/key:/key
[Service]
LoadCredentialEncrypted=key:/etc/b
`), spec.Options{})
	app := all["app"]
	if app == nil {
		t.Fatal(problems)
	}
	secrets := map[string]string{}
	for _, s := range app.Secrets {
		secrets[s.Name] = s.CredentialName() + " of " + s.CredentialFile
	}
	var got []string
	for i := range app.Containers {
		c := &app.Containers[i]
		for _, m := range c.VolumeMounts {
			v := app.Volumes[slices.IndexFunc(app.Volumes, func(v spec.Volume) bool { return v.Name == m.Name })]
			got = append(got, c.Name+" "+m.MountPath+" "+m.SubPath+": "+secrets[v.Secret.SecretName])
		}
	}
	want := []string{
		"a /key key: key of /etc/a", "a /KEY KEY: KEY of /etc/a", "a /key-2 key-2: key-2 of /etc/a", "a /again key: key of /etc/a",
		"b /key key: key of /etc/b",
	}
	if !cmp.Equal(got, want) || len(app.Secrets) != 4 {
		t.Errorf("(-want +got):\n%s\n%d secrets", cmp.Diff(want, got), len(app.Secrets))
	}
}

// TestInstance converts an instance of a template that is named on the command line only, and one that is a symbolic link.
func TestInstance(t *testing.T) {
	t.Parallel()
	directory := write(t, "-- web@.container --\n[Container]\nImage=i:1\nExec=%i\n")
	list, problems := Convert([]string{filepath.Join(directory, "web@one.container")}, &testHost, spec.Options{}, false)
	if len(list) != 1 || list[0].Name != "web-one" || !strings.Contains(string(list[0].Text), `args = ["one"]`) {
		t.Errorf("got %q, %v", list, problems)
	}
	if err := os.Symlink("web@.container", filepath.Join(directory, "web@two.container")); err != nil {
		t.Fatal(err)
	}
	all, problems := pods(t, directory, spec.Options{})
	if len(all) != 1 || all["web-two"] == nil {
		t.Errorf("got %v, %v", describe(all), problems)
	}
}

// TestKube converts Kubernetes files.
func TestKube(t *testing.T) {
	t.Parallel()
	directory := write(t, `
-- shop.kube --
[Unit]
After=db.service
[Kube]
Yaml=shop.yaml
ConfigMap=config.yaml
PublishPort=127.0.0.1:8080:80
PublishPort=9090:9090/udp
-- db.container --
[Unit]
Before=shop.service
[Container]
Image=db:1
-- shop.yaml --
# A comment.
apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  containers:
  - name: web
    image: web:1
    envFrom: [{configMapRef: {name: shop}}]
    ports: [{containerPort: 80}]
-- config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {A: b}
`)
	all, problems := pods(t, directory, spec.Options{})
	shop := all["shop"]
	if shop == nil {
		t.Fatal(problems)
	}
	ports := shop.Containers[0].Ports
	if len(ports) != 2 || ports[0].HostPort != 8080 || ports[0].HostIP != "127.0.0.1" ||
		ports[1].HostPort != 9090 || ports[1].Protocol != "UDP" {
		t.Errorf("ports: got %+v", ports)
	}
	if !cmp.Equal(shop.WaitFor, []string{"pod:db:ready"}) || len(shop.ConfigMaps) != 1 || shop.ConfigMaps[0].Data["A"] != "b" {
		t.Errorf("got %+v", shop)
	}
	writeFile(t, filepath.Join(directory, "config.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {contaners: []}\n")
	_, problems = pods(t, directory, spec.Options{})
	if !strings.Contains(problems.Error(), "config.yaml:4:8: spec.contaners: unknown field") {
		t.Errorf("got %v", problems)
	}
	for unit, want := range map[string]string{
		"[Kube]\n":                 "Yaml= is missing",
		"[Kube]\nYaml=gone.yaml":   "no such file or directory",
		"[Kube]\nYaml=/dev/null":   "",
		"[Kube]\nYaml=.":           "",
		"[Kube]\nYaml=a.container": "",
	} {
		path := filepath.Join(t.TempDir(), "a.kube")
		writeFile(t, path, unit)
		list, problems := Convert([]string{path}, &testHost, spec.Options{}, false)
		if len(list) > 0 || len(problems.Errors()) == 0 || !strings.Contains(problems.Error(), want) {
			t.Errorf("%q: got %v", unit, problems)
		}
	}
}

// TestRead has the rules for lines.
func TestRead(t *testing.T) {
	t.Parallel()
	entries, problems := parse("x", []byte("\xef\xbb\xbf# c\r\n[A]\r\nk = v \\\r\n; comment\r\n  w\\\n\nl=\n [B] \nm= a=b\\\\\n"))
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%d:%d %s.%s=%s", e.at.line, e.at.column, e.section, e.key, e.value))
	}
	if want := []string{"3:1 A.k=v    w", "7:1 A.l=", `9:1 B.m=a=b\\`}; !cmp.Equal(got, want) || len(problems) > 0 {
		t.Errorf("got %q, %v, want %q", got, problems, want)
	}
	for text, want := range map[string]string{
		"a=b":             "x:1:1: the assignment is before the first section header",
		"[A]\nnonsense":   "x:2:1: must be KEY=VALUE, a section header or a comment",
		"[A":              "x:1:1: invalid section header: must be [NAME]",
		"[A]\n=b":         "x:2:1: must be KEY=VALUE, a section header or a comment",
		"[A]\na=b\\":      "x:2:1: the last line ends with a backslash",
		"[A]\na=\x00":     "x:2:1: must be UTF-8 text",
		"[A]\n\na=\xff\n": "x:3:1: must be UTF-8 text",
	} {
		if _, problems := parse("x", []byte(text)); len(problems) != 1 || problems[0].String() != want {
			t.Errorf("%q: got %v, want %s", text, problems, want)
		}
	}
}

// TestHostile has files and directories that are made to harm.
func TestHostile(t *testing.T) {
	t.Parallel()
	link := func(t *testing.T, target, path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, directory string)
		want    string
	}{
		"a loop of links": {
			func(t *testing.T, d string) {
				link(t, "b.container", d+"/a.container")
				link(t, "a.container", d+"/b.container")
			}, "too many levels of symbolic links",
		},
		"a directory in itself": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\n")
				link(t, ".", d+"/a.container.d")
				link(t, ".", d+"/below")
			}, "",
		},
		"a loop of drop-ins": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\n")
				link(t, "a.container.d", d+"/a.container.d")
			}, "too many levels of symbolic links",
		},
		"a drop-in of /etc/shadow": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\n")
				writeFile(t, d+"/secret", "root:hash\n")
				link(t, "../secret", d+"/a.container.d/1.conf")
			}, "a.container.d/1.conf:1:1: must be KEY=VALUE, a section header or a comment",
		},
		"a pipe": {
			func(t *testing.T, d string) {
				if err := syscall.Mkfifo(d+"/a.container", 0o600); err != nil {
					t.Fatal(err)
				}
			}, "not a regular file",
		},
		"a device": {func(t *testing.T, d string) { link(t, "/dev/zero", d+"/a.container") }, "not a regular file"},
		"a large file": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\n"+strings.Repeat("A", 2<<20))
			},
			"larger than 131072 bytes",
		},
		"a large line": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\nEnvironment=A="+strings.Repeat("a", 120<<10)+"\n")
			}, "",
		},
		"many lines": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\n"+strings.Repeat("PublishPort=1-200:1-200\n", 4000))
			}, "",
		},
		"many ports": {
			func(t *testing.T, d string) {
				var b strings.Builder
				b.WriteString("[Container]\nImage=i:1\n")
				for i := range 250 {
					fmt.Fprintf(&b, "ExposeHostPort=%d-%d\n", i*256+1, i*256+256)
				}
				writeFile(t, d+"/a.container", b.String())
			}, "the container has more than 1024 ports",
		},
		"many units": {
			func(t *testing.T, d string) {
				for i := range 300 {
					writeFile(t, fmt.Sprintf("%s/%d.container", d, i), "[Container]\nImage=i:1\n")
				}
			}, "more than 256 units",
		},
		"many drop-ins": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\n")
				for i := range 300 {
					writeFile(t, fmt.Sprintf("%s/a.container.d/%d.conf", d, i), "[Container]\n")
				}
			}, "more than 256 drop-ins",
		},
		"NUL": {
			func(t *testing.T, d string) { writeFile(t, d+"/a.container", "[Container]\nImage=i\x00:1\n") }, "must be UTF-8 text",
		},
		"a name that leaves the directory": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\nContainerName=../../etc/passwd\nVolume=../../x:/y\nHostName=a/b\n")
			}, "Container.HostName",
		},
		"a variable of itself": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container",
					"[Service]\nEnvironment=$A A=${B} B=${A}\n[Container]\nImage=i:1\nExec=$A ${B}\n")
			}, "",
		},
		"variables that grow": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Service]\nEnvironment=A="+strings.Repeat("a", 60<<10)+
					"\n[Container]\nImage=i:1\nExec="+strings.Repeat("${A}", 15<<10)+"\n")
			}, "a.container:5:1: Container.Exec: specifiers and variables add more than 4194304 bytes",
		},
		"words that grow": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Service]\nEnvironment=A="+strings.Repeat("a", 60<<10)+
					"\n[Container]\nImage=i:1\nExec="+strings.Repeat("$A ", 15<<10)+"\n")
			}, "specifiers and variables add more than 4194304 bytes",
		},
		"specifiers that grow": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a@"+strings.Repeat("i", 200)+".container",
					"[Container]\nImage=i:1\nExec="+strings.Repeat("%i", 60<<10)+"\n")
			}, "is longer than 4194304 bytes with its specifiers",
		},
		"many volumes of one name": {
			func(t *testing.T, d string) {
				var b strings.Builder
				for i := range 6000 {
					fmt.Fprintf(&b, "Volume=/%d/x:/p%d\n", i, i)
				}
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\n"+b.String())
			}, "",
		},
		"a large set": {
			func(t *testing.T, d string) {
				for i := range 20 {
					writeFile(t, fmt.Sprintf("%s/%d.container", d, i), "[Container]\nImage=i:1\n#"+strings.Repeat("a", 100<<10)+"\n")
				}
			}, "the units are larger than 1048576 bytes",
		},
		"large drop-ins": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\n")
				for i := range 2 {
					writeFile(t, fmt.Sprintf("%s/a.container.d/%d.conf", d, i), "#"+strings.Repeat("a", 100<<10)+"\n")
				}
			}, "the unit is larger than 131072 bytes with its drop-ins",
		},
		"a Kubernetes file of /etc/shadow": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/secret", "root:hash:1:2:::\nbin:hash:3:::\n")
				writeFile(t, d+"/a.kube", "[Kube]\nYaml=secret\n")
			}, "secret:1:",
		},
		"many Kubernetes files": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/pod.yaml", "#"+strings.Repeat("a", 700<<10)+"\n")
				for i := range 10 {
					writeFile(t, fmt.Sprintf("%s/%d.kube", d, i), "[Kube]\nYaml=pod.yaml\n")
				}
			}, "the Kubernetes files of all units are larger than 4194304 bytes",
		},
		"a secret that leaves its directory": {
			func(t *testing.T, d string) {
				writeFile(t, d+"/a.container", "[Container]\nImage=i:1\nSecret=../../../etc/passwd,target=/x\n")
			}, "Container.Secret",
		},
		"no unit": {func(t *testing.T, d string) { writeFile(t, d+"/a.txt", "x") }, "the directory has no units"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			test.prepare(t, directory)
			list, problems := Convert([]string{directory}, &testHost, spec.Options{}, false)
			if !strings.Contains(problems.Error(), test.want) || test.want != "" && len(list) > 0 {
				t.Errorf("got %d pods, %.2000s, want %q", len(list), problems.Error(), test.want)
			}
			if test.want == "" && len(list) == 0 && len(problems.Errors()) == 0 {
				t.Error("neither pods nor errors")
			}
			if strings.Contains(problems.Error(), "hash") {
				t.Errorf("the content of another file is printed: %v", problems)
			}
		})
	}
}

// corpus are units after the facts of public ones: the keys that they use, with other values. The file NAME/want has the expected verdict.
const corpus = "testdata/corpus.txtar"

// TestCorpus checks the verdict of each unit of the corpus, and that at least 95 % are taken, or refused or lossy as expected.
func TestCorpus(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(corpus)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]*strings.Builder{}
	wants := map[string]string{}
	for _, f := range txtar.Parse(text).Files {
		name, file, _ := strings.Cut(f.Name, "/")
		if file == "want" {
			wants[name] = strings.TrimSpace(string(f.Data))
			continue
		}
		if cases[name] == nil {
			cases[name] = &strings.Builder{}
		}
		fmt.Fprintf(cases[name], "-- %s --\n%s", file, f.Data)
	}
	count := map[string]int{}
	for name, archive := range cases {
		verdict, want, _ := strings.Cut(wants[name], " ")
		directory := write(t, archive.String())
		all, problems := pods(t, directory, spec.Options{})
		got := "taken"
		if len(all) == 0 {
			got = "lost"
			if accepted, _ := pods(t, directory, spec.Options{AllowLoss: true}); len(accepted) == 0 {
				got = "refused"
			}
		}
		count[got]++
		if got != verdict || !strings.Contains(problems.Errors().Error(), want) {
			t.Errorf("%s: %s, want %s %s\n%v", name, got, verdict, want, problems)
		}
	}
	t.Logf("%d cases: %v", len(cases), count)
	if len(cases) < 100 || len(cases) != len(wants) {
		t.Errorf("%d cases, %d verdicts", len(cases), len(wants))
	}
}

// FuzzConvert checks that the conversion ends without a panic, that each problem has a place, and that its pod files are valid: without
// errors there is a pod, and it parses.
func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		"[Container]\nImage=i:1\nExec=a 'b c' %i $$x ${Y}\nVolume=a:/b:ro\nPublishPort=[::1]:1-2:3-4/udp\n[Service]\nEnvironment=Y=1\n",
		"[Container]\nImage=i\nPodmanArgs=--env \"A=b\" -it --cpus 2 -p1:2 --security-opt=a=b\nHealthCmd=[\"a\"]\nNotify=healthy\n",
		"[Unit]\nAfter=a.service b.mount \\\n; x\n c.device\n[Container]\nImage=i:1\n" +
			"Mount=type=tmpfs,dst=/a,tmpfs-size=1g\nSecret=a,mode=0400\n",
		"[Container]\nImage=i:1\nMemory=1.5g\nUser=1:2\nTimezone=a/b\nLabel=a=b\nTmpfs=/a:size=1m\n" +
			"ShmSize=1m\n[Service]\nCPUQuota=1%\nRestartSec=1min\n",
	} {
		f.Add(seed, "[Container]\nEnvironment=A=%n\n", false)
	}
	directory := f.TempDir()
	f.Fuzz(func(t *testing.T, unit, dropIn string, allowLoss bool) {
		path := filepath.Join(directory, fmt.Sprint(os.Getpid()), "a@b.container")
		writeFile(t, path, unit)
		writeFile(t, path+".d/1.conf", dropIn)
		list, problems := Convert([]string{path}, &testHost, spec.Options{AllowLoss: allowLoss}, false)
		for _, p := range problems {
			if p.File == "" || p.Line < 1 || p.Column < 1 || p.Message == "" || strings.ContainsAny(p.Message, "\x00\n") {
				t.Errorf("invalid problem %+q", p)
			}
		}
		if len(problems.Errors()) == 0 && len(list) == 0 || len(problems.Errors()) > 0 && len(list) > 0 {
			t.Errorf("%d pods with the problems %v", len(list), problems)
		}
		for _, p := range list {
			if pod, invalid := spec.Parse("a.toml", p.Text); pod == nil {
				t.Errorf("the pod file is invalid: %v\n%s", invalid, p.Text)
			}
		}
	})
}

// TestKeepIDUsers tests that the containers of a pod with a kept user run as that user, apart from those with a user of their own.
func TestKeepIDUsers(t *testing.T) {
	t.Parallel()
	all, problems := pods(t, write(t, `
-- p.pod --
[Pod]
UserNS=keep-id:uid=5,gid=5
-- a.container --
[Container]
Pod=p.pod
Image=i:1
-- b.container --
[Container]
Pod=p.pod
Image=i:1
User=7
`), spec.Options{})
	if len(all) != 1 || len(all["p"].Containers) != 2 {
		t.Fatalf("got %v: %v", all, problems)
	}
	want := map[string]spec.SecurityContext{"a": {RunAsUser: new(int64(5)), RunAsGroup: new(int64(5))}, "b": {RunAsUser: new(int64(7))}}
	for _, c := range all["p"].Containers {
		if diff := cmp.Diff(want[c.Name], *c.SecurityContext); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.Name, diff)
		}
	}
	if id := all["p"].KeepID; id == nil || *id != 5 {
		t.Errorf("keepID: %v", id)
	}
}
