package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/spec"
)

// settingsOfHints are what hints say to write into podstead.toml, by a part of the hint.
var settingsOfHints = map[string]string{
	"write a notifier as [[notify]] with name": "[[notify]]\nname = \"ops\"\ncommand = [\"/bin/true\"]\n[[notify]]\nname = \"chat\"\n" +
		"url = \"https://alerts.example.com/podstead\"\n",
	"write a rule as [[images.verify]] with prefix":          verifyRule,
	"set shutdownGracePeriod = ":                             "[pods]\nshutdownGracePeriod = \"90s\"\n",
	"or set another OCI runtime as runtime in [engine]":      "[engine]\nruntime = \"crun\"\n",
	"write a command as [[notify]] in podstead.toml":         "[[notify]]\nname = \"ops\"\ncommand = [\"/bin/true\"]\n",
	"to a class of engine.runtimeClasses in podstead.toml":   runtimeClass,
	"define it as [[engine.runtimeClasses]]":                 runtimeClass,
	"write a class as [[engine.runtimeClasses]]":             runtimeClass,
	"change it in [[engine.runtimeClasses]]":                 runtimeClass,
	"set runDir to a directory in memory":                    "runDir = \"/run/podstead\"\n",
	"add the path to devices in [policy]":                    "[policy]\ndevices = [\"/dev\", \"/srv/gps\"]\n",
	"add the part before = to devices in [policy]":           "[policy]\ndevices = [\"/dev\", \"nvidia.com/gpu\"]\n",
	"or add the directory to hostPaths in [policy]":          "[policy]\nhostPaths = [\"/srv\"]\n",
	"from hostPaths in [policy]":                             "[policy]\nhostPaths = [\"/srv\"]\n",
	"set pods.maxReplicas in podstead.toml":                  "pods.maxReplicas = 32\n",
	"set reboot.maxPerDay in podstead.toml":                  "reboot.maxPerDay = 2\n",
	"unless [network] names subnets":                         "[network]\nsubnets = \"10.99.0.0/22\"\n",
	"set mode = \"bridge\" of [network] in podstead.toml":    "[network]\nmode = \"bridge\"\n",
	"set mode = \"none\" of [network] in podstead.toml":      "[network]\nmode = \"none\"\n",
	"set network.subnets in podstead.toml":                   "network.subnets = \"10.99.0.0/22,fd00:77::/64\"\n",
	"containerLog in podstead.toml":                          "containerLog.driver = \"journald\"\n",
	"or raise pods.pidsLimit in podstead.toml":               "pods.pidsLimit = 100\n",
	"to allowedUnsafeSysctls in [policy] of podstead.toml":   "[policy]\nallowedUnsafeSysctls = [\"kernel.msgmax\"]\n",
	"or podSecurity in [policy] of podstead.toml":            "[policy]\npodSecurity = \"privileged\"\n",
	"set requests = \"ignore\" in [policy] of podstead.toml": "[policy]\nrequests = \"ignore\"\n",
	"or change images.verify in podstead.toml":               verifyRule,
}

const runtimeClass = "[[engine.runtimeClasses]]\nname = \"untrusted\"\nruntime = \"crun\"\n"

const verifyRule = "[[images.verify]]\nprefix = \"registry.example.com/shop\"\nkeys = [\"KEY\"]\n"

// fieldsOfHints are what hints outside of package spec say to write into a pod file, by a part of the hint: lines of the pod, and of its
// container.
var fieldsOfHints = map[string][2]string{
	"securityContext.capabilities.drop = [":  {"", `securityContext.capabilities.drop = ["NET_RAW"]`},
	"change hostPort of the pod":             {"", `ports = [{ containerPort = 80, hostPort = 8080 }]`},
	"hostNetwork = true":                     {"hostNetwork = true", ""},
	"imageArchives":                          {`imageArchives = ["shop.tar"]`, ""},
	"read access with readOnly":              {hostPathVolume, `volumeMounts = { v = { mountPath = "/v", readOnly = true } }`},
	"persistentVolumeClaim":                  {`volumes = [{ name = "v", persistentVolumeClaim = { claimName = "data" } }]`, ""},
	"publish a port with hostPort":           {"", `ports = [{ containerPort = 80, hostPort = 8080 }]`},
	"readOnlyRootFilesystem to false":        {"", "securityContext.readOnlyRootFilesystem = false"},
	"remove one of these pods from waitFor":  {"", ""},
	"remove onUnhealthy":                     {"", ""},
	"securityContext.privileged in the":      {"", "securityContext.privileged = true"},
	"set fsGroup in the pod file":            {"securityContext.fsGroup = 1000", ""},
	"fsGroupChangePolicy to OnRootMismatch":  {`securityContext.fsGroupChangePolicy = "OnRootMismatch"`, ""},
	"set procMount and hostUsers = false in": {"hostUsers = false", `securityContext.procMount = "Unmasked"`},
	"set restartPolicyRules in the pod file": {
		"", "restartPolicy = \"Never\"\nrestartPolicyRules = [{ action = \"Restart\", exitCodes = { operator = \"In\", values = [2] } }]",
	},
	"set runAsUser or fsGroup in the pod file": {"securityContext.runAsUser = 1000", ""},
	"set pidsLimit in the pod file":            {"pidsLimit = 100", ""},
	"set keepID in the pod file":               {"keepID = 1000", ""},
	"or set runAsUser to the ID of that user":  {"securityContext.runAsUser = 1000", ""},
	"set supplementalGroups in the pod file":   {"securityContext.supplementalGroups = [44]", ""},
	"podstead.io/log-driver in the pod file":   {`annotations = { "podstead.io/log-driver" = "journald" }`, ""},
	"set ephemeral-storage in the pod file":    {"", `resources.limits = { ephemeral-storage = "1Gi" }`},
	"set hostNetwork in the pod":               {"hostNetwork = true", ""},
	"set hostUsers = false in the pod file":    {"hostUsers = false", ""},
	"set imagePullPolicy":                      {"", `imagePullPolicy = "Always"`},
	"set seccompProfile in the pod file": {
		"", `securityContext.seccompProfile = { type = "Localhost", localhostProfile = "web.json" }`,
	},
	"use an address of the host for hostIP":    {"", `ports = [{ containerPort = 80, hostPort = 8080, hostIP = "192.0.2.1" }]`},
	"write a table [[configMaps]]":             {"[[configMaps]]\nname = \"c\"\ndata = { k = \"v\" }", ""},
	"write a table [[secrets]]":                {"[[secrets]]\nname = \"s\"\ndata = { k = \"v\" }", ""},
	"write resources.limits":                   {"", `resources.limits = { memory = "64Mi" }`},
	"= true for the container in the pod file": {"", "stdin = true"},
}

const hostPathVolume = `volumes = [{ name = "v", hostPath = { path = "/srv" } }]`

// namesField matches hints to fields that are no word of a sentence.
func namesField(hint string) bool {
	return slices.ContainsFunc(regexp.MustCompile(`\[\[\w+\]\]|[a-z][\w.]*\w`).FindAllString(hint, -1), func(word string) bool {
		name := strings.Trim(word, "[]")
		isName := name != word || strings.ContainsFunc(name, unicode.IsUpper) || strings.Contains(name, ".")
		return isName && isField(name) && !isSetting(name) && !isTable(name) && !strings.HasPrefix(name, "metadata.")
	})
}

// TestHintsOfFields writes what the hints in the sources say about fields into a pod file, which has no problems with it.
func TestHintsOfFields(t *testing.T) {
	checkFollowed(t, slices.Collect(maps.Keys(fieldsOfHints)), "fieldsOfHints", func(h foundHint) bool {
		return !strings.HasPrefix(h.at, "../../spec/") && !aboutCompose(&h) && namesField(h.text) // package spec follows its own
	})
	for part, lines := range fieldsOfHints {
		text := lines[0] + "\n[[containers]]\nname = \"app\"\nimage = \"busybox\"\n" + lines[1] + "\n"
		if pod, problems := spec.Parse("web.toml", []byte(text)); pod == nil || len(problems) > 0 {
			t.Errorf("hint %q:\n%v", part, problems)
		}
	}
}

// checkFollowed checks that each hint that must be followed has one of the parts in a table, and that each of these is in a hint.
func checkFollowed(t *testing.T, parts []string, table string, must func(foundHint) bool) {
	t.Helper()
	hints := scanHints(t).hints
	for _, part := range parts {
		if !slices.ContainsFunc(hints, func(h foundHint) bool { return strings.Contains(h.text, part) }) {
			t.Errorf("no hint has %q: remove it from %s", part, table)
		}
	}
	for _, h := range hints {
		if must(h) && !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(h.text, part) }) {
			t.Errorf("%s: hint %q is not followed: add what it says to %s", h.at, h.text, table)
		}
	}
}

// namesSetting matches hints to settings.
var namesSetting = regexp.MustCompile(`podstead\.toml|\[(policy|network|engine|engine\.runtimeClasses|images\.verify|notify)\]|\brunDir\b`)

// TestHintsOfSettings writes what the hints in the sources say about settings into podstead.toml, which is valid with it.
func TestHintsOfSettings(t *testing.T) {
	checkFollowed(t, slices.Collect(maps.Keys(settingsOfHints)), "settingsOfHints",
		func(h foundHint) bool { return namesSetting.MatchString(h.text) })
	key := filepath.Join(t.TempDir(), "shop.pub")
	for part, text := range settingsOfHints {
		file := filepath.Join(t.TempDir(), "podstead.toml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "KEY", key)), 0o600); err != nil {
			t.Fatal(err)
		}
		unset := func(string) (string, bool) { return "", false }
		if _, err := config.Load(config.Sources{File: file, Env: unset, Flag: unset}); err != nil {
			t.Errorf("hint %q: %v\n%s", part, err, text)
		}
	}
}
