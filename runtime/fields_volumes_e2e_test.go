//go:build e2e

package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// list prints the files of a directory: path, mode, content.
const list = `cd /v; find . -follow -type f -not -path '*/..*' | sort | while read -r f; do echo "$f $(stat -L -c %a $f) $(cat $f)"; done`

// volumeFile has a container that lists the volume v.
const volumeFile = `
labels = { app = "shop" }
annotations = { note = "free text" }
configMaps = [{ name = "conf", data = { one = "1", two = "2" } }]
secrets = [{ name = "keys", data = { one = "s1", two = "s2" } }]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", %q]
volumeMounts.v = "/v"

[[volumes]]
name = "v"
%s
`

// TestFieldsContent tests the files of configMap, secret, projected and downwardAPI volumes.
//
// fields: name, labels, annotations, configMaps[].{name,data}, secrets[].{name,data}
// fields: volumes[].configMap.{name,defaultMode,optional}, volumes[].secret.{secretName,defaultMode,optional}
// fields: volumes[].{configMap,secret}.items[].{key,path,mode}
// fields: volumes[].projected.defaultMode, volumes[].projected.sources[].{configMap,secret}.{name,optional}
// fields: volumes[].projected.sources[].{configMap,secret}.items[].{key,path,mode}
// fields: volumes[].downwardAPI.defaultMode
// fields: volumes[].{downwardAPI,projected.sources[].downwardAPI}.items[].{path,mode}
// fields: volumes[].{downwardAPI,projected.sources[].downwardAPI}.items[].fieldRef.{apiVersion,fieldPath}
// fields: volumes[].{downwardAPI,projected.sources[].downwardAPI}.items[].resourceFieldRef.{containerName,resource,divisor}
func TestFieldsContent(t *testing.T) {
	m := newTestHost(t)
	for _, test := range []struct {
		volume string
		want   []string // what the container lists
	}{
		{`configMap.name = "conf"`, []string{"./one 644 1", "./two 644 2"}},
		{
			`configMap = { name = "conf", defaultMode = 0o400, items = [{ key = "two", path = "a/b" }, { key = "one", path = "c", mode = ` +
				`0o640 }] }`,
			[]string{"./a/b 400 2", "./c 640 1"},
		},
		{`configMap = { name = "none", optional = true }`, nil},
		{
			`configMap = { name = "conf", optional = true, items = [{ key = "none", path = "x" }, { key = "one", path = "y" }] }`,
			[]string{"./y 644 1"},
		},
		{`secret.secretName = "keys"`, []string{"./one 644 s1", "./two 644 s2"}},
		{
			`secret = { secretName = "keys", defaultMode = 0o400, items = [{ key = "two", path = "a/b" }, { key = "one", path = "c", ` +
				`mode = 0o640 }] }`,
			[]string{"./a/b 400 s2", "./c 640 s1"},
		},
		{`secret = { secretName = "none", optional = true }`, nil},
		{
			`secret = { secretName = "keys", optional = true, items = [{ key = "none", path = "x" }, { key = "one", path = "y" }] }`,
			[]string{"./y 644 s1"},
		},
		{`projected = { defaultMode = 0o440, sources = [
			{ configMap = { name = "conf", items = [{ key = "one", path = "c/one" }, { key = "two", path = "two", mode = 0o600 }] } },
			{ secret = { name = "keys", items = [{ key = "one", path = "s/one", mode = 0o400 }, { key = "two", path = "s/two" }] } },
			{ configMap = { name = "none", optional = true } },
			{ secret = { name = "none", optional = true } },
			{ downwardAPI.items = [
				{ path = "d/app", fieldRef = { apiVersion = "v1", fieldPath = "metadata.labels['app']" } },
				{ path = "d/memory", mode = 0o444, resourceFieldRef = { containerName = "c", resource = "limits.memory", divisor = "1Mi" } },
			] },
		] }`, []string{"./c/one 440 1", "./d/app 440 shop", "./d/memory 444 64", "./s/one 400 s1", "./s/two 440 s2", "./two 600 2"}},
		{
			`projected.sources = [{ configMap.name = "conf" }, { secret = { name = "keys", items = [{ key = "one", path = "three" }] } }]`,
			[]string{"./one 644 1", "./three 644 s1", "./two 644 2"},
		},
		{
			`downwardAPI = { defaultMode = 0o400, items = [
			{ path = "annotations", fieldRef.fieldPath = "metadata.annotations" },
			{ path = "labels", fieldRef = { apiVersion = "v1", fieldPath = "metadata.labels" } },
			{ path = "pod/name", mode = 0o644, fieldRef.fieldPath = "metadata.name" },
			{ path = "pod/uid", fieldRef.fieldPath = "metadata.uid" },
			{ path = "bytes", resourceFieldRef = { containerName = "c", resource = "limits.memory" } },
			{ path = "memory", resourceFieldRef = { containerName = "c", resource = "limits.memory", divisor = "1Mi" } },
		] }`,
			[]string{
				`./annotations 400 note="free text"`, "./bytes 400 67108864", `./labels 400 app="shop"`, "./memory 400 64",
				"./pod/name 644 pod", "./pod/uid 400 " + uid,
			},
		},
	} {
		definition := m.parse(fmt.Sprintf(volumeFile, list, test.volume))
		// Set resources without the limits that the pod file would apply to the container.
		definition.Containers[0].Resources.Limits = spec.ResourceList{"memory": resource.MustParse("64Mi")}
		p := newPod(m, definition)
		if got := strings.TrimSuffix(p.run("c"), "\n"); got != strings.Join(test.want, "\n") {
			t.Errorf("%s: the container lists\n%s\nwant\n%s", test.volume, got, strings.Join(test.want, "\n"))
		}
		if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFieldsContentMissing tests the failures for missing content, and that the files are read-only.
//
// fields: volumes[].configMap.{name,optional}, volumes[].secret.{secretName,optional}
// fields: volumes[].{configMap,secret}.items[].key, volumes[].projected.sources[].{configMap,secret}.{name,optional}
func TestFieldsContentMissing(t *testing.T) {
	m := newTestHost(t)
	m.write("etc/configmaps/files/key", "1", 0o644)
	m.write("etc/secrets/files/key", "1", 0o600)
	p := newPod(m, &spec.Pod{})
	for _, test := range []struct{ volume, message string }{
		{`configMap.name = "none"`, `configmap "none" not found`},
		{`configMap = { name = "files", items = [{ key = "none", path = "x" }] }`, "references non-existent config key: none"},
		{`secret.secretName = "none"`, `secret "none" not found`},
		{`secret = { secretName = "files", items = [{ key = "none", path = "x" }] }`, "references non-existent secret key: none"},
		{`projected.sources = [{ configMap.name = "none" }]`, `configmap "none" not found`},
		{`projected.sources = [{ secret.name = "none" }]`, `secret "none" not found`},
	} {
		definition := m.parse(fmt.Sprintf(volumeFile, list, test.volume))
		definition.Name = p.Name
		_, err := m.StartSandbox(m.ctx(), uid, definition, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
		wantFailure(t, test.volume, err, lifecycle.ReasonFailedMount, test.message)
	}
	p.Pod = m.parse(fmt.Sprintf(volumeFile, "touch /v/x 2>&1 | sed 's/.*: //'; grep -c ' /v .* - tmpfs ' /proc/self/mountinfo",
		`secret.secretName = "keys"`))
	p.sandbox(1)
	wantLines(t, p.run("c"), "Read-only file system", "1")
}

const emptyDirFile = `
volumes = [
	{ name = "disk", emptyDir = {} },
	{ name = "memory", emptyDir = { medium = "Memory", sizeLimit = "2Mi" } },
	{ name = "limited", emptyDir = { sizeLimit = "64Ki" } },
	{ name = "own", emptyDir = { mode = 0o750 } },
	{ name = "sticky", emptyDir = { medium = "Memory", sizeLimit = "1Mi", mode = 0o1777 } },
]

[[containers]]
name = "writes"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	ls /disk /memory | grep -v ':$'
	grep -c ' /disk .* - tmpfs ' /proc/self/mountinfo; grep -c ' /memory .* - tmpfs ' /proc/self/mountinfo
	df -k /memory | awk 'END { print $2 }'
	stat -c %a /disk /memory /own /sticky
	echo kept > /disk/file; echo kept > /memory/file''']
volumeMounts = { disk = "/disk", memory = "/memory", own = "/own", sticky = "/sticky" }

[[containers]]
name = "reads"
image = "localhost/podstead/busybox:1"
command = ["cat", "/disk/file", "/memory/file"]
volumeMounts = { disk = "/disk", memory = "/memory" }

[[containers]]
name = "fills"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "head -c 200000 /dev/zero > /limited/file; sync; dd if=/dev/zero of=/memory/file bs=1k count=3000 2>&1 | grep -o 'No space left on device'"]
volumeMounts = { limited = "/limited", memory = "/memory" }
`

// TestFieldsEmptyDir tests emptyDir volumes on disk and in memory, with and without a size limit and a mode.
//
// fields: volumes[].emptyDir.{medium,mode,sizeLimit}
func TestFieldsEmptyDir(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(emptyDirFile))
	wantLines(t, p.run("writes"), "", "0", "1", "2048", "777", "777", "750", "1777")
	wantLines(t, p.run("reads"), "kept", "kept")
	wantLines(t, p.run("fills"), "No space left on device")
	evicted, err := p.WaitSandbox(p.ctx(), uid, p.Pod, 1)
	if err != nil || !strings.Contains(evicted, `"limited"`) || !strings.Contains(evicted, "64Ki") {
		t.Errorf("eviction message %q, %v", evicted, err)
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	p = newPod(m, m.parse(emptyDirFile)) // a new pod with the same name has empty volumes
	wantLines(t, p.run("writes"), "", "0", "1", "2048", "777", "777", "750", "1777")
}

const claimFile = `
volumes = [{ name = "data", persistentVolumeClaim.claimName = "pgdata" }, { name = "look", persistentVolumeClaim = { claimName = "pgdata", readOnly = true } }]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", 'cat /data/file 2>&1; touch /look/x 2>&1 | sed "s/.*: //"; echo kept >> /data/file']
volumeMounts = { data = "/data", look = "/look" }
`

// TestFieldsClaim tests a persistent volume, which outlives its pods.
//
// fields: volumes[].persistentVolumeClaim.{claimName,readOnly}
func TestFieldsClaim(t *testing.T) {
	m := newTestHost(t)
	for _, want := range [][]string{
		{"cat: can't open '/data/file': No such file or directory", "Read-only file system"},
		{"kept", "Read-only file system"},
		{"kept", "kept", "Read-only file system"},
	} {
		p := newPod(m, m.parse(claimFile))
		wantLines(t, p.run("c"), want...)
		if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(m.opts.StateDir, "volumes", "pgdata", "file"))
	if err != nil || string(text) != "kept\nkept\nkept\n" {
		t.Errorf("content of the persistent volume: %q, %v", text, err)
	}
}

// TestFieldsHostPath tests paths relative to the pod file, and types that create the path.
//
// fields: volumes[].hostPath.{path,type}
func TestFieldsHostPath(t *testing.T) {
	m := newTestHost(t)
	m.write("files/text", "of the host\n", 0o644)
	p := newPod(m, m.parse(fmt.Sprintf(volumeFile, list, `hostPath = { path = "files", type = "Directory" }`)))
	wantLines(t, p.run("c"), "./text 644 of the host")
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	p = newPod(m,
		m.parse(fmt.Sprintf(volumeFile, "echo of the pod > /v/text", `hostPath = { path = "created/deep", type = "DirectoryOrCreate" }`)))
	p.run("c")
	text, err := os.ReadFile(filepath.Join(m.dir, "created/deep/text"))
	if err != nil || string(text) != "of the pod\n" {
		t.Errorf("content on the host: %q, %v", text, err)
	}
}

const imageVolumeFile = `
imageArchives = ["busybox.tar", %q]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	ls -d /img/srv /img/bin/testserver
	touch /img/x 2>&1 | sed "s/.*: //"
	/img/bin/testserver 2>&1 | sed "s/.*: //"
	ls /part''']
volumeMounts = [{ name = "img", mountPath = "/img" }, { name = "img", mountPath = "/part", subPath = "bin" }]

[[volumes]]
name = "img"
image = { reference = "localhost/podstead/testserver:1", pullPolicy = "Never" }
`

// TestFieldsImageVolume tests that the files of an image volume are read-only and not executable.
//
// fields: volumes[].image.{reference,pullPolicy}
func TestFieldsImageVolume(t *testing.T) {
	m := newTestHost(t)
	definition := m.parse(fmt.Sprintf(imageVolumeFile, filepath.Join(programs, "testserver.tar")))
	if _, err := m.PullImage(m.ctx(), definition, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {}); err != nil {
		t.Fatal(err)
	}
	p := newPod(m, definition)
	wantLines(t, p.run("c"), "/img/bin/testserver", "/img/srv", "Read-only file system", "Permission denied", "testserver")
}

const groupFile = `
securityContext = { fsGroup = 2000, fsGroupChangePolicy = %q }
configMaps = [{ name = "conf", data = { one = "1" } }]
volumes = [
	{ name = "disk", emptyDir = {} },
	{ name = "memory", emptyDir.medium = "Memory" },
	{ name = "claim", persistentVolumeClaim.claimName = "data" },
	{ name = "conf", configMap = { name = "conf", defaultMode = 0o400 } },
]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	id -G | tr ' ' '\n' | grep -x 2000
	stat -c "%%n %%g %%a" /disk /memory /claim
	touch /disk/new && stat -c "%%g" /disk/new
	stat -L -c "%%n %%g %%a" /conf/one
	[ -e /claim/old ] && stat -c "old %%g" /claim/old
	touch /claim/old && chgrp 0 /claim/old''']
volumeMounts = { disk = "/disk", memory = "/memory", claim = "/claim", conf = "/conf" }
`

// TestFieldsGroup tests the group of volumes, and when the files of a persistent volume are changed.
//
// fields: securityContext.{fsGroup,fsGroupChangePolicy}
func TestFieldsGroup(t *testing.T) {
	m := newTestHost(t)
	always := []string{"2000", "/disk 2000 2777", "/memory 2000 2777", "/claim 2000 2777", "2000", "/conf/one 2000 440"}
	for _, test := range []struct {
		policy string
		old    []string // the group of a file that the previous pod has changed
	}{
		{"Always", nil},
		{"OnRootMismatch", []string{"old 0"}},
		{"Always", []string{"old 2000"}},
	} {
		p := newPod(m, m.parse(fmt.Sprintf(groupFile, test.policy)))
		wantLines(t, p.run("c"), slices.Concat(always, test.old)...)
		if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
			t.Fatal(err)
		}
	}
}
