package config

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

var update = flag.Bool("update", false, "update docs/reference/configuration.md")

const (
	referencePage = "../../docs/reference/configuration.md"

	// exampleFile is the example of the page. TestReference parses it.
	exampleFile = `logDir = "/srv/podstead/log"

[engine]
runtime = "crun"

[policy]
podSecurity = "baseline"
hostPaths = ["/srv", "/etc/localtime"]
`
)

// verifyExample is the example of rules for signatures. TestReference parses it.
const verifyExample = `[images]
verifyDefault = "reject"

[[images.verify]]
prefix = "registry.example.com/shop"
keys = ["/etc/podstead/keys/shop.pub"]

[[images.verify]]
prefix = "docker.io/library"
type = "accept"
`

// TestReference compares docs/reference/configuration.md with the settings. This updates the page:
//
//	go test ./internal/config -run TestReference -update
func TestReference(t *testing.T) {
	want := configurationPage(t)
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not up to date, run go test ./internal/config -run TestReference -update (-want +got):\n%s", referencePage, diff)
	}
}

// classesExample is the example of runtime classes. TestReference parses it.
const classesExample = `[[engine.runtimeClasses]]
name = "untrusted"
runtime = "/usr/local/bin/runsc"

[[engine.runtimeClasses]]
name = "crun"
runtime = "crun"
`

const notifyExample = `[[notify]]
name = "chat"
urlFile = "/etc/podstead/chat.url"
types = ["Warning"]

[[notify]]
name = "page"
command = ["/usr/local/bin/page", "--team", "shop"]
reasons = ["BackOff", "Unhealthy"]
selector = "app=shop"
`

func configurationPage(t *testing.T) string {
	t.Helper()
	if problems := spec.Decode("podstead.toml", []byte(exampleFile), &Config{}).Problems(); len(problems) > 0 {
		t.Errorf("example: %v", problems)
	}
	if problems := spec.Decode("podstead.toml", []byte(verifyExample), &Config{}).Problems(); len(problems) > 0 {
		t.Errorf("example of rules: %v", problems)
	}
	if problems := spec.Decode("podstead.toml", []byte(classesExample), &Config{}).Problems(); len(problems) > 0 {
		t.Errorf("example of runtime classes: %v", problems)
	}
	if problems := spec.Decode("podstead.toml", []byte(notifyExample), &Config{}).Problems(); len(problems) > 0 {
		t.Errorf("example of notifiers: %v", problems)
	}
	var b strings.Builder
	b.WriteString("# Configuration\n\n```console\n$ podstead daemon --config podstead.toml\n```\n\n" +
		"The daemon and all commands read the file of `--config` or `PODSTEAD_CONFIG`. The default is `podstead.toml` in the directory\n" +
		"of `--config-dir` or `PODSTEAD_CONFIG_DIR`: without them `" + DefaultPath + "` or, for the daemon of a user,\n" +
		"`~/.config/podstead/podstead.toml`. It need not exist. An example:\n\n" +
		"```toml\n" + exampleFile + "```\n\n" +
		"Every key has a flag and an environment variable. A flag overrides the variable, and the variable overrides the file:\n\n" +
		"```console\n$ podstead daemon --engine-runtime crun\n$ PODSTEAD_ENGINE_RUNTIME=crun podstead daemon\n```\n\n" +
		"Do not quote values of flags and variables. Separate the elements of a list with commas.\n\n" +
		"The file is checked as strictly as a [pod file](pod-file.md). An unknown key is an error:\n\n" +
		"```text\n$ systemctl restart podstead\n$ podstead get\n" +
		"podstead: warning: the configuration file is invalid, the last valid file is used: " +
		"/etc/podstead/podstead.toml:4:1: engine.runtme: unknown field\n" +
		"NAME   READY   STATUS    RESTARTS   AGE   IP\nweb    1/1     Running   0          2d    10.77.64.4\n" +
		"$ podstead doctor | grep -A 1 configuration\n" +
		"warn  configuration    /etc/podstead/podstead.toml:4:1: engine.runtme: unknown field\n" +
		"      hint: correct the file, then reload it with systemctl reload podstead; the daemon uses the last valid one\n```\n\n" +
		"A mistake in the file stops neither pods nor commands. A daemon copies a file that it uses to the state directory. If the\n" +
		"file is invalid, the next daemon starts with the copy, and the event `ConfigInvalid` and the log report each mistake.\n" +
		"Without a copy, the daemon does not start. Flags and variables have no copy: a mistake in them is an error. The copy is in\n" +
		"the state directory that is in effect without the file. Only root can read it: the warning of other users names the\n" +
		"socket that is tried. Set `PODSTEAD_SOCKET` if the daemon has another one.\n\n" +
		"## Reload\n\n```console\n$ systemctl reload podstead\n$ podstead events | grep Config\n```\n\n" +
		"On SIGHUP the daemon reads the file again. It applies the keys below that reload: `ConfigReloaded` lists those that changed. " +
		"For the others,\n" +
		"`ConfigRestartRequired` lists those that differ; `systemctl restart podstead` applies them, and containers keep running. A file " +
		"with errors changes\n" +
		"nothing, and `ConfigInvalid` has its errors with line and column. The files in `images.certsDir` are read for every pull.\n\n" +
		"## Keys\n\nThis part is generated from the settings in package `config`. A key `section.key` is `key` in the table " +
		"`[section]`.\n\n" +
		"| Key | Type | Default | Reloads | Flag | Environment variable | Description |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	var unsupported []string
	for _, s := range settings() {
		if !slices.ContainsFunc(Settings(), func(public Setting) bool { return public.Key == s.Key }) {
			unsupported = append(unsupported, "`"+s.Key+"`")
			continue
		}
		if s.Help == "" {
			t.Errorf("setting %s has no description", s.Key)
		}
		reload := "no"
		if s.Reloads {
			reload = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `--%s` | `%s` | %s |\n", s.Key, s.Kind(), defaultOf(&s), reload, s.Flag, s.Env,
			strings.ReplaceAll(s.Help, "|", `\|`))
	}
	b.WriteString("\n## Runtime classes\n\n```toml\n" + classesExample + "```\n\n" +
		"`engine.runtimeClasses` is an array of tables, which only the file can have. It reloads. A pod with the `name` of a class as\n" +
		"`runtimeClassName` runs with the OCI runtime of the class, other pods with that of `engine.runtime`. A pod keeps that of " +
		"its class\nuntil its next sandbox. For how it is used, see [Run a pod with another OCI runtime]" +
		"(../howto/configure-pods.md#run-a-pod-with-another-oci-runtime).\n\n" +
		"| Key | Type | Default | Description |\n| --- | --- | --- | --- |\n" +
		"| `name` | string |  | unique name: lower case letters, digits, `-` and `.`. Required |\n" +
		"| `runtime` | string |  | OCI runtime with the command line of runc: the name of a program or an absolute path. Required |\n")
	b.WriteString("\n## Signatures of images\n\n```toml\n" + verifyExample + "```\n\n" +
		"`images.verify` is an array of tables, which only the file can have. It reloads, and so do the keys. Each rule is for the " +
		"repositories with its prefix:\n" +
		"a registry, or the start of a repository on the border of a path component. The longest prefix decides. For how it is " +
		"used, see\n" +
		"[Verify signatures of images](../howto/verify-image-signatures.md).\n\n" +
		"| Key | Type | Default | Description |\n| --- | --- | --- | --- |\n" +
		"| `prefix` | string |  | such as `registry.example.com/shop`. It has a registry, and neither a tag nor a slash at the end |\n" +
		"| `type` | string | `signed` | `signed`: one of the keys must have signed the digest of the image; `accept`: images need no " +
		"signature; `reject`: images are not used |\n" +
		"| `keys` | list |  | files with a public key in PEM format: ECDSA, Ed25519 or RSA. Required for the type `signed` |\n")
	b.WriteString("\n## Notifications\n\n```toml\n" + notifyExample + "```\n\n" +
		"`notify` is an array of tables, which only the file can have. It reloads. For how it is used, see [Send " +
		"notifications](../howto/notify.md).\n\n" +
		"| Key | Type | Default | Description |\n| --- | --- | --- | --- |\n" +
		"| `name` | string |  | unique name: lower case letters, digits and `-`. Required |\n" +
		"| `command` | list |  | absolute path of a program, and its arguments. Set exactly one of `command`, `url` and `urlFile` |\n" +
		"| `url` | string |  | `http` or `https` URL for a POST request |\n" +
		"| `urlFile` | string |  | file with the URL, if it is secret. It is read for every attempt |\n" +
		"| `headersFile` | string |  | file with lines `NAME: VALUE`. It is read for every attempt |\n" +
		"| `caFile` | string | those of the host | trusted certificates in PEM format. It is read for every attempt |\n" +
		"| `timeout` | duration | `10s` | timeout of one attempt, at most `10m` |\n" +
		"| `reasons` | list | all | reasons of [events](events.md) |\n" +
		"| `types` | list | `Warning`; all if `reasons` is set | `Normal`, `Warning` |\n" +
		"| `pods` | list | all | names or patterns, such as `web-*` |\n" +
		"| `selector` | string | all | label selector. Events without a pod do not match |\n")
	b.WriteString("\n## Keys that are not supported yet\n\nSetting one of these keys is an error, unless the value has no effect: " +
		strings.Join(unsupported, ", ") + ".\n")
	return b.String()
}

// defaultOf returns the default in the table: its value, or its description if it depends on another setting.
func defaultOf(s *Setting) string {
	if s.Default == "" {
		return s.DefaultHelp
	}
	return code(s.Default)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
