package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// load loads a configuration file with environment variables and flags.
func load(t *testing.T, text string, env, flags map[string]string) (*config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "podstead.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Sources{File: path, Env: lookup(env), Flag: lookup(flags)})
}

func lookup(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestDefaults(t *testing.T) {
	c, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Socket != "/run/podstead/podstead.sock" || c.StateDir != "/var/lib/podstead" || c.Engine.Runtime != "auto" ||
		c.Engine.IdleTimeout.Duration() != time.Minute || c.ContainerLog.MaxSize.Value() != 10<<20 || c.ContainerLog.MaxFiles != 5 ||
		c.Images.MaxParallelPulls != 2 || c.ContainerLog.Driver != "file" || c.Pods.Dir != "/etc/podstead/pods.d" {
		t.Errorf("%+v", c)
	}
}

func TestPrecedenceOfFlagsEnvironmentAndFile(t *testing.T) {
	text := "runDir = \"/file\"\n[engine]\nruntime = \"file\"\nidleTimeout = \"1s\"\n[containerLog]\nmaxSize = \"1Mi\"\n"
	env := map[string]string{"PODSTEAD_ENGINE_RUNTIME": "env", "PODSTEAD_ENGINE_IDLE_TIMEOUT": "2s"}
	c, err := load(t, text, env, map[string]string{"engine-runtime": "flag"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Engine.Runtime != "flag" || c.Engine.IdleTimeout != "2s" || c.ContainerLog.MaxSize.String() != "1Mi" ||
		c.Socket != "/file/podstead.sock" {
		t.Errorf("%+v", c)
	}
}

// TestNoShutdown: a daemon that leaves the shutdown of the host to systemd has a period of 0.
func TestNoShutdown(t *testing.T) {
	c, err := load(t, "[pods]\nshutdownGracePeriod = \"0\"\n", nil, nil)
	if err != nil || c.Pods.ShutdownGracePeriod.Duration() != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestPodsDir: the pods directory is in the configuration directory, unless it is set.
func TestPodsDir(t *testing.T) {
	for _, test := range []struct {
		text       string
		env, flags map[string]string
		want       string
	}{
		{"configDir = \"/conf\"\n", nil, nil, "/conf/pods.d"},
		{"configDir = \"/conf\"\n[pods]\ndir = \"/srv/pods\"\n", nil, nil, "/srv/pods"},
		{"[pods]\ndir = \"/srv/pods\"\n", map[string]string{"PODSTEAD_PODS_DIR": "/env"}, nil, "/env"},
		{"", map[string]string{"PODSTEAD_PODS_DIR": "/env"}, map[string]string{"pods-dir": "/flag"}, "/flag"},
	} {
		c, err := load(t, test.text, test.env, test.flags)
		if err != nil || c.Pods.Dir != test.want {
			t.Errorf("%q, %v, %v: %+v, %v; want %s", test.text, test.env, test.flags, c, err, test.want)
		}
	}
	if _, err := load(t, "[pods]\ndir = \"relative\"\n", nil, nil); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("a relative path: %v", err)
	}
}

func TestAdmissionPolicy(t *testing.T) {
	for _, test := range []struct {
		name, text string
		env        map[string]string
		want       admission.Policy
	}{
		{"default", "", nil, admission.Policy{PodSecurity: admission.Privileged, HostPaths: []string{"/"}, Devices: []string{"/dev"}}},
		{
			"from the file",
			"[policy]\npodSecurity = \"restricted\"\nhostPaths = [\"/srv\", \"/data\"]\nallowedUnsafeSysctls = [\"net.core.*\"]\n", nil,
			admission.Policy{
				PodSecurity: admission.Restricted, HostPaths: []string{"/srv", "/data"}, Devices: []string{"/dev"},
				UnsafeSysctls: []string{"net.core.*"},
			},
		},
		{
			"empty list of host paths", "[policy]\nhostPaths = []\n", nil,
			admission.Policy{PodSecurity: admission.Privileged, HostPaths: []string{}, Devices: []string{"/dev"}},
		},
		{
			"from the environment", "[policy]\nhostPaths = [\"/srv\"]\n",
			map[string]string{
				"PODSTEAD_POLICY_POD_SECURITY": "baseline", "PODSTEAD_POLICY_HOST_PATHS": "",
				"PODSTEAD_POLICY_ALLOWED_UNSAFE_SYSCTLS": "net.*, kernel.sem",
			},
			admission.Policy{
				PodSecurity: admission.Baseline, HostPaths: []string{}, Devices: []string{"/dev"},
				UnsafeSysctls: []string{"net.*", "kernel.sem"},
			},
		},
		{
			"reserved resources", "[policy]\nrequests = \"ignore\"\nsystemReserved = [\"cpu=500m\", \"memory = 1Gi\"]\n", nil,
			admission.Policy{
				PodSecurity: admission.Privileged, HostPaths: []string{"/"}, Devices: []string{"/dev"}, IgnoreRequests: true,
				SystemReserved: spec.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")},
			},
		},
		{
			"reserved resources from the environment", "[policy]\nrequests = \"ignore\"\nsystemReserved = [\"cpu=500m\"]\n",
			map[string]string{"PODSTEAD_POLICY_REQUESTS": "enforce", "PODSTEAD_POLICY_SYSTEM_RESERVED": "ephemeral-storage=1Gi"},
			admission.Policy{
				PodSecurity: admission.Privileged, HostPaths: []string{"/"}, Devices: []string{"/dev"},
				SystemReserved: spec.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := load(t, test.text, test.env, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, c.Policy.Admission()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want, hint string }{
		{"unknown key", "\n[engine]\nruntim = \"crun\"", "3:1: engine.runtim: unknown field", `did you mean "runtime"?`},
		{"unknown section", "[engin]\n", "1:2: engin: unknown field", `did you mean "engine"?`},
		{
			"key below the wrong header", "[engine]\nstateDir = \"/x\"",
			`2:1: engine.stateDir: "stateDir" is a field of the top level, not of engine`,
			"move it to the top of the file, above the first [header]",
		},
		{
			"wrong type", "[images]\nmaxParallelPulls = \"2\"", `2:20: images.maxParallelPulls: must be an integer, found string "2"`,
			"write 2 without quotes",
		},
		{
			"invalid duration", "[engine]\nidleTimeout = \"soon\"",
			`2:15: engine.idleTimeout: must be a duration greater than 0, such as "60s" or "5m"`, "",
		},
		{
			"invalid cgroup driver", "[engine]\ncgroupDriver = \"x\"", "2:16: engine.cgroupDriver: must be one of auto, cgroupfs, systemd",
			"",
		},
		{"number out of range", "[containerLog]\nmaxFiles = 0", "2:12: containerLog.maxFiles: must be between 2 and 1000, inclusive", ""},
		{"size too small", "[containerLog]\nmaxSize = 10", "2:11: containerLog.maxSize: must be at least 4096 bytes", ""},
		{"relative path", "stateDir = \"x\"", "1:12: stateDir: must be an absolute path", ""},
		{"key that is not supported yet", "[engine]\naddress = \"/run/containerd.sock\"", "2:11: engine.address: not supported yet", ""},
		{
			"address without a port", "[metrics]\naddress = \"127.0.0.1\"",
			"2:11: metrics.address: must be HOST:PORT, such as 127.0.0.1:9469", "",
		},
		{
			"address with a name", "[metrics]\naddress = \"example.org:9469\"",
			"2:11: metrics.address: host \"example.org\": must be an IP address or localhost", "",
		},
		{
			"address with port 0", "[metrics]\naddress = \"127.0.0.1:0\"", "2:11: metrics.address: port \"0\": must be between 1 and 65535",
			"",
		},
		{"relative certificate", "[metrics]\ncertFile = \"cert.pem\"", "2:12: metrics.certFile: must be an absolute path", ""},
		{
			"percentage out of range", "[images]\ngcHighPercent = 101", "2:17: images.gcHighPercent: must be between 0 and 100, inclusive",
			"",
		},
		{"invalid age of images", "[images]\nmaxAge = \"30d\"", `2:10: images.maxAge: must be a duration, such as "2m" or "720h"`, ""},
		{"negative age of images", "[images]\nminAge = \"-1m\"", `2:10: images.minAge: must be a duration, such as "2m" or "720h"`, ""},
		{
			"invalid TTL of finished pods", "[pods]\nfinishedPodTTL = \"0s\"",
			`2:18: pods.finishedPodTTL: must be a duration greater than 0, such as "60s" or "5m"`, "",
		},
		{"no finished pods", "[pods]\nmaxFinishedPods = 0", "2:19: pods.maxFinishedPods: must be between 1 and 10000, inclusive", ""},
		{"invalid network mode", "[network]\nmode = \"host\"", "2:8: network.mode: must be one of bridge, none", ""},
		{
			"invalid subnet", "[network]\nsubnets = \"10.90.0.1/22\"",
			"2:11: network.subnets: subnet 10.90.0.1/22: must be the first address of a subnet and its prefix length", "",
		},
		{
			"invalid Pod Security level", "[policy]\npodSecurity = \"strict\"",
			"2:15: policy.podSecurity: must be one of privileged, baseline, restricted", "",
		},
		{"relative path in a list", "[policy]\nhostPaths = [\"/\", \"srv\"]", `2:1: policy.hostPaths: "srv": must be an absolute path`, ""},
		{
			"sysctl that is not namespaced", "[policy]\nallowedUnsafeSysctls = [\"kernel.panic\"]",
			`2:1: policy.allowedUnsafeSysctls: "kernel.panic" is not a namespaced sysctl`, "",
		},
		{"invalid treatment of requests", "[policy]\nrequests = \"no\"", "2:12: policy.requests: must be one of enforce, ignore", ""},
		{
			"unknown reserved resource", "[policy]\nsystemReserved = [\"pods=1\"]",
			`2:1: policy.systemReserved: "pods=1": must be a resource (cpu, memory, ephemeral-storage) and its amount, such as memory=1Gi`,
			"",
		},
		{
			"invalid reserved amount", "[policy]\nsystemReserved = [\"memory=-1Gi\"]",
			`2:1: policy.systemReserved: "memory=-1Gi": "-1Gi" must be a quantity of at least 0, such as 500m or 1Gi`, "",
		},
		{
			"resource that is reserved twice", "[policy]\nsystemReserved = [\"cpu=1\", \"cpu=2\"]",
			`2:1: policy.systemReserved: "cpu=2": cpu is listed twice`, "",
		},
		{
			"unknown log driver", "[containerLog]\ndriver = \"syslog\"", "2:10: containerLog.driver: must be one of file, memory, journald",
			"",
		},
		{
			"limit of all logs too small", "[containerLog]\ntotalMaxSize = \"1Ki\"",
			"2:16: containerLog.totalMaxSize: must be at least 1048576 bytes", "",
		},
		{
			"log in memory too small", "[containerLog]\nmemoryMaxSize = 0",
			"2:17: containerLog.memoryMaxSize: must be at least 65536 bytes", "",
		},
		{
			"invalid rate of logs", "[containerLog]\nrateLimit = \"100\"",
			`2:13: containerLog.rateLimit: must be off or a rate greater than 0, such as "100 lines/s" or "64Ki bytes/s"`, "",
		},
		{"compression that is not a boolean", "[containerLog]\ncompress = \"yes\"", "2:12: containerLog.compress: ", ""},
		{"external engine", "[engine]\naddress = \"/run/c.sock\"", "2:11: engine.address: not supported yet", ""},
		{"invalid TOML", "stateDir = /x", "1:12: invalid TOML", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.text, nil, nil)
			problems, ok := errors.AsType[spec.Problems](err)
			if !ok || len(problems) != 1 {
				t.Fatalf("error %v, want one problem", err)
			}
			if got := problems[0].String(); !strings.Contains(got, "podstead.toml:"+c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.hint != "" && problems[0].Hint != c.hint {
				t.Errorf("hint %q, want %q", problems[0].Hint, c.hint)
			}
		})
	}
}

func TestDefaultsOfUnsupportedSettingsAreAccepted(t *testing.T) {
	if _, err := load(t, "[engine]\naddress = \"\"\n[containerLog]\ndriver = \"file\"\n", nil, nil); err != nil {
		t.Error(err)
	}
}

func TestInvalidEnvironmentAndFlags(t *testing.T) {
	for _, c := range []struct {
		env, flags map[string]string
		want       string
	}{
		{map[string]string{"PODSTEAD_STATE_DIR": "x"}, nil, `PODSTEAD_STATE_DIR="x": must be an absolute path`},
		{map[string]string{"PODSTEAD_IMAGES_MAX_PARALLEL_PULLS": "x"}, nil, `PODSTEAD_IMAGES_MAX_PARALLEL_PULLS="x": must be an integer`},
		{
			map[string]string{"PODSTEAD_METRICS_ADDRESS": "x"},
			nil,
			`PODSTEAD_METRICS_ADDRESS="x": must be HOST:PORT, such as 127.0.0.1:9469`,
		},
		{
			map[string]string{"PODSTEAD_IMAGES_GC_HIGH_PERCENT": "101"},
			nil,
			`PODSTEAD_IMAGES_GC_HIGH_PERCENT="101": must be between 0 and 100, inclusive`,
		},
		{
			map[string]string{"PODSTEAD_IMAGES_GC_HIGH_PERCENT": "70"},
			nil,
			"images.gcLowPercent = 80: must not exceed images.gcHighPercent = 70",
		},
		{nil, map[string]string{"engine-runtime": "./x"}, `--engine-runtime="./x": must be the name of a program or an absolute path`},
	} {
		if _, err := load(t, "", c.env, c.flags); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestMissingFile(t *testing.T) {
	_, err := config.Load(config.Sources{File: filepath.Join(t.TempDir(), "none.toml")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestConfigDir: the file is in the configuration directory of the flag or the variable, unless another one is named. A file that sets the
// configuration directory is read from where it is.
func TestConfigDir(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	write := func(dir, text string) string {
		path := filepath.Join(dir, "podstead.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write(dir, "runDir = \"/run/a\"\n")
	named := write(other, "runDir = \"/run/b\"\n")
	for name, test := range map[string]struct {
		file, runDir string
		env, flags   map[string]string
	}{
		"flag":            {"", "/run/a", nil, map[string]string{"config-dir": dir}},
		"variable":        {"", "/run/a", map[string]string{"PODSTEAD_CONFIG_DIR": dir}, nil},
		"flag first":      {"", "/run/a", map[string]string{"PODSTEAD_CONFIG_DIR": other}, map[string]string{"config-dir": dir}},
		"no file":         {"", "/run/podstead", nil, map[string]string{"config-dir": filepath.Join(dir, "none")}},
		"--config":        {named, "/run/b", nil, map[string]string{"config-dir": dir}},
		"set by the file": {write(t.TempDir(), "configDir = \""+other+"\"\nrunDir = \"/run/c\"\n"), "/run/c", nil, nil},
	} {
		c, err := config.Load(config.Sources{File: test.file, Env: lookup(test.env), Flag: lookup(test.flags)})
		if err != nil || c.RunDir != test.runDir {
			t.Errorf("%s: %v, %v; want the runtime directory %s", name, c, err, test.runDir)
		}
	}
	flags := lookup(map[string]string{"config-dir": dir})
	if c, err := config.Load(config.Sources{Flag: flags, Env: lookup(nil)}); err != nil || c.File() != file {
		t.Errorf("%v, %v", c, err)
	}
}

// TestMetricsAddress: only this host can connect without TLS.
func TestMetricsAddress(t *testing.T) {
	const files = "\ncertFile = \"/etc/podstead/cert.pem\"\nkeyFile = \"/etc/podstead/key.pem\""
	for _, test := range []struct{ text, want string }{
		{`address = ""`, ""},
		{`address = "127.0.0.1:9469"`, ""},
		{`address = "[::1]:9469"`, ""},
		{`address = "localhost:9469"`, ""},
		{`address = "[::ffff:127.0.0.1]:9469"`, ""},
		{`address = "0.0.0.0:9469"` + files, ""},
		{`address = ":9469"`, "an address other than loopback requires metrics.certFile and metrics.keyFile"},
		{`address = "192.0.2.1:9469"`, "an address other than loopback requires metrics.certFile and metrics.keyFile"},
		{`address = "127.0.0.1:9469"` + "\nkeyFile = \"/key.pem\"", "set both of metrics.certFile and metrics.keyFile, or none"},
		{files, "metrics.certFile: requires metrics.address"},
	} {
		_, err := load(t, "[metrics]\n"+test.text, nil, nil)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.text, err, test.want)
		}
	}
}

// TestAllowedDevice: a device of the policy is an absolute path, a kind of CDI devices or one of them.
func TestAllowedDevice(t *testing.T) {
	for entry, want := range map[string]bool{
		"/dev": true, "vendor.com/class": true, "vendor.com/class=a": true, "dev": false, "vendor.com/": false, "vendor.com/class=": false,
	} {
		if _, err := load(t, fmt.Sprintf("[policy]\ndevices = [%q]\n", entry), nil, nil); (err == nil) != want {
			t.Errorf("%q: %v", entry, err)
		}
	}
}
