package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestVolumeRules checks the rules for volumes.
func TestVolumeRules(t *testing.T) {
	checkRules(t, []rule{
		{volume("emptyDir = {}\n[[volumes]]\nname = \"v\"\nemptyDir = {}"), "volumes[1].name", "Duplicate value"},
		{volume(`emptyDir.medium = "memory"`), "volumes[0].emptyDir.medium", "Unsupported value"},
		{volume(`emptyDir.mode = 0o2777`), "volumes[0].emptyDir.mode", "between 0 and 0o1777"},
		{volume(`emptyDir.mode = -1`), "volumes[0].emptyDir.mode", "between 0 and 0o1777"},
		{volume(`emptyDir.medium = "HugePages-2Mi"`), "volumes[0].emptyDir.medium", "there is no resource request for huge pages"},
		{volume(`emptyDir.medium = "HugePages"`), "volumes[0].emptyDir.medium", "there is no resource request for huge pages"},
		{volume(`emptyDir.medium = "Huge"`), "volumes[0].emptyDir.medium", "Unsupported value"},
		{volume(`hostPath = {}`), "volumes[0].hostPath.path", "Required value"},
		{volume(`hostPath.path = "/srv/../etc"`), "volumes[0].hostPath.path", "'..'"},
		{volume(`hostPath = { path = "/srv", type = "Dir" }`), "volumes[0].hostPath.type", "Unsupported value"},
		{volume(`persistentVolumeClaim.claimName = "../a"`), "volumes[0].persistentVolumeClaim.claimName", "subdomain"},
		{volume(`configMap = { items = [] }`), "volumes[0].configMap.name", "Required value"},
		{volume(`configMap = { name = "a", defaultMode = 644 }`), "volumes[0].configMap.defaultMode", "0o777"},
		{volume(`secret = { secretName = "a", items = [{ key = "a", path = "/b" }] }`), "volumes[0].secret.items[0].path", "relative"},
		{volume(`secret = { secretName = "a", items = [{ key = "a", path = "../b" }] }`), "volumes[0].secret.items[0].path", "'..'"},
		{
			volume(`secret = { secretName = "a", items = [{ key = "a", path = "b" }, { key = "c", path = "./b" }] }`),
			"volumes[0].secret.items[1].path", "Duplicate value",
		},
		{
			volume("secret = { secretName = \"a\", items = [{ key = \"pasword\", path = \"b\" }] }\n[[secrets]]\nname = " +
				"\"a\"\ndata.password = \"x\""),
			"volumes[0].secret.items[0].key", "Not found: key",
		},
		{
			volume(`secret = { secretName = "s", items = [{ key = "a", path = "..data/a" }] }`),
			"volumes[0].secret.items[0].path", "must not start with '..'",
		},
		{
			volume(`projected.sources = [{ serviceAccountToken = {} }]`), "volumes[0].projected.sources[0].serviceAccountToken",
			"there are no service accounts",
		},
		{volume(`downwardAPI.items = [{ path = "a" }]`), "volumes[0].downwardAPI.items[0]", "must specify one of"},
		{
			volume(`downwardAPI.items = [{ path = "a", resourceFieldRef.resource = "limits.cpu" }]`),
			"volumes[0].downwardAPI.items[0].resourceFieldRef.containerName", "Required value",
		},
		{volume(`image.reference = "A"`), "volumes[0].image.reference", "must be an image reference"},
		{volume(`nfs = { server = "a" }`), "volumes[0].nfs", "the host mounts storage"},
	})
}

// TestMountRules checks the rules for volumeMounts of the second container.
func TestMountRules(t *testing.T) {
	checkRules(t, []rule{
		{mount(`{ mountPath = "/a" }`), "containers[1].volumeMounts[0].name", "Required value"},
		{mount(`{ name = "v" }`), "containers[1].volumeMounts[0].mountPath", "Required value"},
		{mount(`{ name = "v", mountPath = "proc/keys" }`), "containers[1].volumeMounts[0].mountPath", "below /proc"},
		{mount(`{ name = "v", mountPath = "/a:b" }`), "containers[1].volumeMounts[0].mountPath", "':'"},
		{mount(`{ name = "v", mountPath = "//" }`), "containers[1].volumeMounts[0].mountPath", "root"},
		{mount(`{ name = "v", mountPath = "/proc" }`), "containers[1].volumeMounts[0].mountPath", "below /proc"},
		{mount(`{ name = "v", mountPath = "/a/../proc/keys/" }`), "containers[1].volumeMounts[0].mountPath", "below /proc"},
		{mount(`{ name = "v", mountPath = "//sys/fs/cgroup" }`), "containers[1].volumeMounts[0].mountPath", "below /sys"},
		{mount(`{ name = "v", mountPath = "/dev/" }`), "containers[1].volumeMounts[0].mountPath", "/dev is set up by the OCI runtime"},
		{
			mount(`{ name = "v", mountPath = "/dev/null" }`), "containers[1].volumeMounts[0].mountPath",
			"/dev/null is set up by the OCI runtime",
		},
		{
			mount(`{ name = "v", mountPath = "/dev/pts/0" }`), "containers[1].volumeMounts[0].mountPath",
			"/dev/pts is set up by the OCI runtime",
		},
		{mount(`{ name = "v", mountPath = "/dev/shm/a" }`), "containers[1].volumeMounts[0].mountPath", "below /dev/shm"},
		{
			mount(`{ name = "v", mountPath = "/dev/a/b" }, { name = "v", mountPath = "/dev/a" }`),
			"containers[1].volumeMounts[0].mountPath", "below the mount point /dev/a",
		},
		{mount(`{ name = "v", mountPath = "/a", subPath = "../b" }`), "containers[1].volumeMounts[0].subPath", "'..'"},
		{
			mount(`{ name = "v", mountPath = "/a", subPath = "b", subPathExpr = "c" }`), "containers[1].volumeMounts[0].subPathExpr",
			"mutually exclusive",
		},
		{
			mount(`{ name = "v", mountPath = "/a", mountPropagation = "Bidirectional" }`), "containers[1].volumeMounts[0].mountPropagation",
			"privileged",
		},
		{
			"hostUsers = false\n" + mount(`{ name = "v", mountPath = "/a", mountPropagation = "Bidirectional" }`) +
				"securityContext.privileged = true\n",
			"containers[1].volumeMounts[0].mountPropagation", "hostUsers",
		},
		{
			mount(`{ name = "v", mountPath = "/a", recursiveReadOnly = "Enabled" }`), "containers[1].volumeMounts[0].recursiveReadOnly",
			"readOnly",
		},
		{
			mount(`{ name = "v", mountPath = "/a", readOnly = true, mountPropagation = "HostToContainer", recursiveReadOnly = "Enabled" }`),
			"containers[1].volumeMounts[0].recursiveReadOnly", "mountPropagation",
		},
		{mount(`{ name = "v", mountPath = "/a", mountPropagation = "" }`), "containers[1].volumeMounts[0].mountPropagation", `value: ""`},
		{mount(`{ name = "v", mountPath = "/a", recursiveReadOnly = "" }`), "containers[1].volumeMounts[0].recursiveReadOnly", `value: ""`},
		{
			appWith("volumeMounts.v = { name = \"v\", mountPath = \"/a\" }\n[[volumes]]\nname = \"v\"\nemptyDir = {}"),
			"containers[0].volumeMounts.v.name", "name of the volume",
		},
		{appWith("volumeMounts.v = 1\n[[volumes]]\nname = \"v\"\nemptyDir = {}"), "containers[0].volumeMounts.v", "must be a string"},
	})
}

// TestSecurityRules checks the rules for security contexts.
func TestSecurityRules(t *testing.T) {
	checkRules(t, []rule{
		{podSecurity(`runAsUser = -1`), "securityContext.runAsUser", "between 0 and"},
		{podSecurity(`supplementalGroups = [4294967296]`), "securityContext.supplementalGroups[0]", "between 0 and"},
		{podSecurity(`supplementalGroups = 1`), "securityContext.supplementalGroups", "an array of integers"},
		{podSecurity(`fsGroupChangePolicy = ""`), "securityContext.fsGroupChangePolicy", `Unsupported value: ""`},
		{podSecurity(`supplementalGroupsPolicy = ""`), "securityContext.supplementalGroupsPolicy", `Unsupported value: ""`},
		{podSecurity(`fsGroupChangePolicy = "Never"`), "securityContext.fsGroupChangePolicy", "Unsupported value"},
		{podSecurity(`sysctls = [{ name = "A", value = "1" }]`), "securityContext.sysctls[0].name", "sysctl"},
		{
			podSecurity(`sysctls = [{ name = "net.a", value = "1" }, { name = "net/a", value = "1" }]`), "securityContext.sysctls[1].name",
			"Duplicate value",
		},
		{
			"hostNetwork = true\n" + podSecurity(`sysctls = [{ name = "net.a", value = "1" }]`), "securityContext.sysctls[0].name",
			"hostNetwork",
		},
		{
			"hostIPC = true\n" + podSecurity(`sysctls = [{ name = "kernel.shmmax", value = "1" }]`), "securityContext.sysctls[0].name",
			"hostIPC",
		},
		{podSecurity(`seLinuxOptions = { level = "s0" }`), "securityContext.seLinuxOptions", "containers have no SELinux labels"},
		{podSecurity(`seccompProfile = {}`), "securityContext.seccompProfile.type", "Required value"},
		{podSecurity(`seccompProfile = { type = "Localhost" }`), "securityContext.seccompProfile.localhostProfile", "Required value"},
		{
			podSecurity(`seccompProfile = { type = "Localhost", localhostProfile = "../a" }`),
			"securityContext.seccompProfile.localhostProfile", "'..'",
		},
		{
			podSecurity(`seccompProfile = { type = "Unconfined", localhostProfile = "a" }`),
			"securityContext.seccompProfile.localhostProfile", "Localhost",
		},
		{security(`capabilities.add = ["CAP_KILL"]`), "containers[0].securityContext.capabilities.add[0]", "Linux capability"},
		{security(`procMount = "Unmasked"`), "containers[0].securityContext.procMount", "hostUsers"},
		{
			security("privileged = true\nallowPrivilegeEscalation = false"), "containers[0].securityContext.allowPrivilegeEscalation",
			"privileged",
		},
		{security(`procMount = ""`), "containers[0].securityContext.procMount", `supported values: "Default", "Unmasked"`},
		{
			security(`appArmorProfile = { type = "Localhost", localhostProfile = " a" }`),
			"containers[0].securityContext.appArmorProfile.localhostProfile", "padded",
		},
		{
			security(`appArmorProfile = { type = "Localhost", localhostProfile = "` + strings.Repeat("a", 4096) + `" }`),
			"containers[0].securityContext.appArmorProfile.localhostProfile", "Too long",
		},
		{
			annotated(seccompPod, "unconfined") + podSecurity(`seccompProfile = { type = "RuntimeDefault" }`),
			"securityContext.seccompProfile.type", "must match",
		},
		{
			annotated(seccompContainerPrefix+"app", "localhost/a") +
				security(`seccompProfile = { type = "Localhost", localhostProfile = "b" }`),
			"containers[0].securityContext.seccompProfile.localhostProfile", "must match",
		},
		{security(`privileged = "yes"`), "containers[0].securityContext.privileged", "must be a boolean"},
	})
}

// TestVolumeWithoutSource checks that a volume without a source is an emptyDir, as the API server defaults it.
func TestVolumeWithoutSource(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: app, image: busybox}]\n  volumes:\n " +
		" - name: v\n"
	for _, test := range []struct{ file, text string }{
		{"web.toml", volume("")},
		{"web.yaml", manifest},
		{"web.yaml", manifest + "    emptyDir:\n"},
		{"web.yaml", manifest + "    emptyDir: null\n"},
		{"web.yaml", manifest + "    hostPath: null\n"},
	} {
		pod, problems := Parse(test.file, []byte(test.text))
		if pod == nil || len(problems) > 0 || pod.Volumes[0].EmptyDir == nil {
			t.Errorf("%s: got %v, want an emptyDir\n%s", test.file, problems, test.text)
		}
	}
}

// annotated begins a pod file with an annotation.
func annotated(key, value string) string {
	return fmt.Sprintf("annotations = { %q = %q }\n", key, value)
}

// TestCapabilitiesAreUpperCase checks that capabilities are known by one name, as containerd's CRI writes them.
func TestCapabilitiesAreUpperCase(t *testing.T) {
	pod, problems := Parse("web.toml", []byte(security(`capabilities = { add = ["net_Admin"], drop = ["all"] }`)))
	if pod == nil {
		t.Fatal(problems)
	}
	c := pod.Containers[0].SecurityContext.Capabilities
	if c.Add[0] != "NET_ADMIN" || c.Drop[0] != "ALL" {
		t.Errorf("got %+v", c)
	}
}

// TestAcceptedAsInTheAPI checks what the Pod API accepts although it has no effect or fails later. Here, a warning says so.
func TestAcceptedAsInTheAPI(t *testing.T) {
	for _, test := range []struct{ file, warning string }{
		{volume(`projected = {}`), ""},
		{mount(`{ name = "v", mountPath = "a" }`), "is relative, mounted at /a"},
		{mount(`{ name = "v", mountPath = "/a" }, { name = "v", mountPath = "/a/" }`), "hides the volume that is mounted at /a before"},
		{mount(`{ name = "v", mountPath = "/a/" }, { name = "v", mountPath = "/a" }`), "hides the volume that is mounted at /a before"},
		{mount(`{ name = "v", mountPath = "/a" }, { name = "v", mountPath = "a" }`), "hides the volume that is mounted at /a before"},
		{mount(`{ name = "v", mountPath = "a" }, { name = "v", mountPath = "/a" }`), "hides the volume that is mounted at /a before"},
		{mount(`{ name = "v", mountPath = "//a" }, { name = "v", mountPath = "/a" }`), "hides the volume that is mounted at /a before"},
		{liveness(`httpGet.port = "http"`), `the container has no port "http", so this always fails`},
		{liveness(`tcpSocket.port = "http"`), `the container has no port "http", so this always fails`},
		{envVariable(`resourceFieldRef = { resource = "limits.memory", divisor = "1024Ki" }`), ""},
		{envVariable(`resourceFieldRef = { resource = "limits.cpu", divisor = "0.001" }`), ""},
		{appWith(`terminationMessagePath = "log"`), "is relative, used as /log"},
		{appWith(`lifecycle.preStop.sleep = {}`), ""},
		{appWith(`ports = [{ containerPort = 80, hostPort = 0 }]`), ""},
		{restartRules(`{ action = "Restart", exitCodes = { operator = "NotIn" } }`), ""},
		{restartRules(`{ action = "Restart", exitCodes = { operator = "In", values = [1, 1] } }`), ""},
		{pod(`hostAliases = [{ ip = "10.0.0.1" }]`), ""},
		{security("capabilities.add = [\"SYS_ADMIN\"]\nallowPrivilegeEscalation = false"), ""},
		{security(`capabilities = { add = ["net_admin"], drop = ["all"] }`), ""},
		{security(`appArmorProfile = { type = "Localhost", localhostProfile = "/usr/sbin/nginx" }`), ""},
		{envVariable(`resourceFieldRef = { resource = "limits.cpu", divisor = "0" }`), ""},
	} {
		pod, problems := parse("web.toml", []byte(test.file), Options{})
		warnings := problems.Warnings()
		expected := func(p Problem) bool { return strings.Contains(p.Message, test.warning) }
		found := test.warning != "" && slices.ContainsFunc(warnings, expected)
		if pod == nil || (test.warning != "") != found || test.warning == "" && len(warnings) > 0 {
			t.Errorf("want the warning %q, got %v\n%s", test.warning, problems, clipFile(test.file))
		}
	}
}
