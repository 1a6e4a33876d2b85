//go:build e2e

package runtime_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const envFile = `
name = "web"
labels = { app = "shop", "example.org/tier" = "edge" }
annotations = { note = "free text" }
configMaps = [{ name = "colors", data = { door = "blue" } }]
secrets = [{ name = "db", data = { password = "s3cret" } }]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", 'env | grep -E "^(FIELD|RES|CM|SEC|V)_" | sort']
env = [
	{ name = "V_A", value = "1" },
	{ name = "V_B", value = "$(V_A)2 $$(V_A) $(NONE)" },
	{ name = "FIELD_NAME", valueFrom.fieldRef = { apiVersion = "v1", fieldPath = "metadata.name" } },
	{ name = "FIELD_NAMESPACE", valueFrom.fieldRef.fieldPath = "metadata.namespace" },
	{ name = "FIELD_UID", valueFrom.fieldRef.fieldPath = "metadata.uid" },
	{ name = "FIELD_LABEL", valueFrom.fieldRef.fieldPath = "metadata.labels['example.org/tier']" },
	{ name = "FIELD_NO_LABEL", valueFrom.fieldRef.fieldPath = "metadata.labels['none']" },
	{ name = "FIELD_NOTE", valueFrom.fieldRef.fieldPath = "metadata.annotations['note']" },
	{ name = "FIELD_NODE", valueFrom.fieldRef.fieldPath = "spec.nodeName" },
	{ name = "FIELD_ACCOUNT", valueFrom.fieldRef.fieldPath = "spec.serviceAccountName" },
	{ name = "FIELD_HOST_IP", valueFrom.fieldRef.fieldPath = "status.hostIP" },
	{ name = "FIELD_HOST_IPS", valueFrom.fieldRef.fieldPath = "status.hostIPs" },
	{ name = "RES_CPU", valueFrom.resourceFieldRef = { resource = "limits.cpu" } },
	{ name = "RES_MILLI", valueFrom.resourceFieldRef = { resource = "limits.cpu", divisor = "1m" } },
	{ name = "RES_OTHER", valueFrom.resourceFieldRef = { containerName = "other", resource = "limits.memory", divisor = "1Mi" } },
	{ name = "RES_REQUEST", valueFrom.resourceFieldRef = { containerName = "other", resource = "requests.memory" } },
	{ name = "CM_DOOR", valueFrom.configMapKeyRef = { name = "colors", key = "door" } },
	{ name = "CM_DIR", valueFrom.configMapKeyRef = { name = "files", key = "key", optional = true } },
	{ name = "CM_NO_KEY", valueFrom.configMapKeyRef = { name = "files", key = "none", optional = true } },
	{ name = "CM_NO_MAP", valueFrom.configMapKeyRef = { name = "none", key = "none", optional = true } },
	{ name = "SEC_PASSWORD", valueFrom.secretKeyRef = { name = "db", key = "password" } },
	{ name = "SEC_USED", value = "db:$(SEC_PASSWORD)" },
	{ name = "SEC_NO_KEY", valueFrom.secretKeyRef = { name = "files", key = "none", optional = true } },
	{ name = "SEC_NO_SECRET", valueFrom.secretKeyRef = { name = "none", key = "none", optional = true } },
]

[[containers]]
name = "other"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	[ "$IP" = "$(ip -4 -o addr show dev eth0 | awk '{ sub("/.*", "", $4); print $4 }')" ] && echo "own address"
	[ "${IPS%%,*}" = "$IP" ] && echo "first of its addresses"''']
env.IP.fieldRef.fieldPath = "status.podIP"
env.IPS.fieldRef.fieldPath = "status.podIPs"
`

// TestFieldsEnv tests environment variables from all sources.
//
// fields: name, labels, annotations, serviceAccountName, configMaps[].{name,data}, secrets[].{name,data}
// fields: containers[].env[].{name,value}, containers[].env[].valueFrom.fieldRef.{apiVersion,fieldPath}
// fields: containers[].env[].valueFrom.resourceFieldRef.{containerName,resource,divisor}
// fields: containers[].env[].valueFrom.{configMapKeyRef,secretKeyRef}.{name,key,optional}
func TestFieldsEnv(t *testing.T) {
	m := newTestHost(t)
	m.write("etc/configmaps/files/key", "of a directory", 0o644)
	m.write("etc/secrets/files/key", "of a directory", 0o600)
	definition := m.parse(envFile)
	// Set resources without the limits that the pod file would apply to the container.
	definition.Containers[1].Resources.Limits = spec.ResourceList{"memory": resource.MustParse("64Mi")}
	definition.Containers[1].Resources.Requests = spec.ResourceList{"memory": resource.MustParse("1k")}
	definition.ServiceAccountName = "shop" // the pod file would have a warning
	p := newPod(m, definition)
	node, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	cpus := strconv.Itoa(runtime.NumCPU())
	wantLines(t, p.run("c"),
		"CM_DIR=of a directory", "CM_DOOR=blue",
		"FIELD_ACCOUNT=shop", "FIELD_HOST_IP=127.0.0.1", "FIELD_HOST_IPS=127.0.0.1", "FIELD_LABEL=edge", "FIELD_NAME=web",
		"FIELD_NAMESPACE=default",
		"FIELD_NODE="+node, "FIELD_NOTE=free text", "FIELD_NO_LABEL=", "FIELD_UID="+uid,
		"RES_CPU="+cpus, "RES_MILLI="+cpus+"000", "RES_OTHER=64", "RES_REQUEST=1000",
		"SEC_PASSWORD=s3cret", "SEC_USED=db:s3cret", "V_A=1", "V_B=12 $(V_A) $(NONE)")
	wantLines(t, p.run("other"), "own address", "first of its addresses")
}

const envFromFile = `
configMaps = [
	{ name = "colors", data = { door = "blue", wall = "$(door)" } },
	{ name = "of-a-file", envFile = "app.env", data = { DATA = "both" } },
]
secrets = [
	{ name = "db", data = { password = "s3cret" } },
	{ name = "of-a-file", envFile = "secret.env" },
	{ name = "of-systemd", credential = "token" },
]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "env | grep -vE '^(PATH|PWD|SHLVL|HOME|HOSTNAME)=' | sort"]
env = [{ name = "A_wall", value = "$(A_door), painted" }]
envFrom = [
	{ prefix = "A_", configMapRef = { name = "colors" } },
	{ configMapRef = { name = "of-a-file" } },
	{ configMapRef = { name = "files", optional = true } },
	{ configMapRef = { name = "none", optional = true } },
	{ prefix = "S_", secretRef = { name = "db" } },
	{ secretRef = { name = "of-a-file" } },
	{ secretRef = { name = "of-systemd" } },
	{ secretRef = { name = "files", optional = true } },
	{ secretRef = { name = "none", optional = true } },
]
`

// TestFieldsEnvFrom tests variables for all keys of config maps and secrets, from all sources.
//
// fields: containers[].envFrom[].prefix, containers[].envFrom[].{configMapRef,secretRef}.{name,optional}
// fields: configMaps[].{name,data,envFile}, secrets[].{name,data,envFile,credential}
func TestFieldsEnvFrom(t *testing.T) {
	m := newTestHost(t)
	m.write("app.env", "# of the file\nFROM_FILE=yes\n", 0o644)
	m.write("secret.env", "FROM_SECRET_FILE=yes\n", 0o600)
	m.write("credentials/token", "of systemd", 0o400)
	m.write("etc/configmaps/files/FROM_DIR", "yes", 0o644)
	m.write("etc/secrets/files/FROM_SECRET_DIR", "yes", 0o600)
	p := newPod(m, m.parse(envFromFile))
	wantLines(t, p.run("c"), "A_door=blue", "A_wall=blue, painted", "DATA=both", "FROM_DIR=yes", "FROM_FILE=yes",
		"FROM_SECRET_DIR=yes", "FROM_SECRET_FILE=yes", "S_password=s3cret", "token=of systemd")
}

// TestFieldsMissing tests the failures for missing config maps, secrets and keys.
//
// fields: containers[].env[].valueFrom.{configMapKeyRef,secretKeyRef}.{name,key,optional}
// fields: containers[].envFrom[].{configMapRef,secretRef}.{name,optional}
func TestFieldsMissing(t *testing.T) {
	m := newTestHost(t)
	m.write("etc/configmaps/files/key", "of a directory", 0o644)
	m.write("etc/secrets/files/key", "of a directory", 0o600)
	m.write("etc/secrets/open/key", "s3cret", 0o644)
	p := newPod(m, &spec.Pod{})
	for _, test := range []struct{ line, message string }{
		{`env.A.configMapKeyRef = { name = "none", key = "key" }`, `configmap "none" not found`},
		{`env.A.configMapKeyRef = { name = "files", key = "none" }`, "couldn't find key none in ConfigMap default/files"},
		{`env.A.secretKeyRef = { name = "none", key = "key" }`, `secret "none" not found`},
		{`env.A.secretKeyRef = { name = "files", key = "none" }`, "couldn't find key none in Secret default/files"},
		{`env.A.secretKeyRef = { name = "open", key = "key", optional = true }`, "is accessible by other users than its owner"},
		{`envFrom = [{ configMapRef = { name = "none" } }]`, `configmap "none" not found`},
		{`envFrom = [{ secretRef = { name = "none" } }]`, `secret "none" not found`},
	} {
		file := m.parse("[[containers]]\nname = \"c\"\nimage = \"localhost/podstead/busybox:1\"\ncommand = [\"true\"]\n" + test.line)
		p.Containers = file.Containers
		_, err := p.begin("c")
		wantFailure(t, test.line, err, lifecycle.ReasonCreateConfigError, test.message)
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error contains the secret: %v", test.line, err)
		}
	}
}

const envOfFilesFile = `
volumes = [{ name = "disk", emptyDir = {} }, { name = "memory", emptyDir = { medium = "Memory" } }]

[[initContainers]]
name = "writer"
image = "localhost/podstead/busybox:1"
volumeMounts = [{ name = "disk", mountPath = "/disk" }, { name = "memory", mountPath = "/memory" }]
command = ["sh", "-c", '''
	umask 077; mkdir /disk/conf
	printf "# written by a container\\nADDRESS='db:5432'\\nTEXT='two\\nlines $%s'\\nEMPTY=''\\n" HOME > /disk/conf/app.env
	ln -s /conf/app.env /disk/link
	echo "KEY='in memory'" > /memory/app.env
	ln -s /etc/passwd /disk/out; mkfifo /disk/fifo; echo "KEY=plain" > /disk/plain
	dd if=/dev/zero of=/disk/large bs=1M seek=100000 count=0''']

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "env | grep -vE '^(PATH|PWD|SHLVL|HOME|HOSTNAME)=' | sort; echo $(F_ADDRESS); ls /disk 2>&1 || true"]
env.F_ADDRESS.fileKeyRef = { volumeName = "disk", path = "conf/app.env", key = "ADDRESS" }
env.F_LINK.fileKeyRef = { volumeName = "disk", path = "link", key = "TEXT", optional = false }
env.F_MEMORY.fileKeyRef = { volumeName = "memory", path = "app.env", key = "KEY" }
env.F_NO_KEY.fileKeyRef = { volumeName = "disk", path = "link", key = "NONE", optional = true }
env.F_NO_FILE.fileKeyRef = { volumeName = "disk", path = "none", key = "NONE", optional = true }
env.F_EMPTY.fileKeyRef = { volumeName = "disk", path = "link", key = "EMPTY", optional = true }
`

// TestFieldsFileKey tests variables from files that an init container has written. The container that has them mounts no volume.
//
// fields: containers[].env[].valueFrom.fileKeyRef.{volumeName,path,key,optional}
func TestFieldsFileKey(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(envOfFilesFile))
	const ref = "env.A.fileKeyRef = { volumeName = "
	check := func(line, message string) {
		t.Helper()
		file := m.parse(strings.SplitAfter(envOfFilesFile, "}]\n")[0] +
			"[[containers]]\nname = \"fails\"\nimage = \"localhost/podstead/busybox:1\"\ncommand = [\"true\"]\n" + line)
		p.Containers = append(p.Containers[:1], file.Containers...)
		_, err := p.begin("fails")
		wantFailure(t, line, err, lifecycle.ReasonCreateConfigError, message)
	}
	check(ref+`"disk", path = "conf/app.env", key = "ADDRESS" }`,
		`couldn't parse env file: file "conf/app.env" of volume "disk": no such file`)
	p.run("writer")
	wantLines(t, p.run("c"), "F_ADDRESS=db:5432", "F_LINK=two", "F_MEMORY=in memory", "lines $HOME", "db:5432",
		"ls: /disk: No such file or directory")
	for _, test := range []struct{ line, message string }{
		{`"disk", path = "link", key = "NONE" }`, `environment variable key "NONE" not found in file "link" of volume "disk"`},
		{`"disk", path = "link", key = "EMPTY" }`, `environment variable key "EMPTY" not found in file "link" of volume "disk"`},
		{`"disk", path = "none", key = "A" }`, `file "none" of volume "disk": no such file or directory`},
		{`"disk", path = "out", key = "root" }`, `file "out" of volume "disk": no such file or directory`},
		{`"disk", path = "fifo", key = "A", optional = true }`, `file "fifo" of volume "disk": open fifo: not a regular file`},
		{`"disk", path = "conf", key = "A", optional = true }`, `file "conf" of volume "disk": open conf: not a regular file`},
		{`"disk", path = "large", key = "A", optional = true }`, `file "large" of volume "disk": larger than 1048576 bytes`},
		{`"disk", path = "plain", key = "KEY" }`, "at line 1: value must be enclosed in single quotes"},
	} {
		check(ref+test.line, test.message)
	}
}
