package spec

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// composeService are the attributes of a service in the Compose specification.
const composeService = `annotations attach build blkio_config cpu_count cpu_percent cpu_shares cpu_period cpu_quota cpu_rt_runtime
	cpu_rt_period cpus cpuset cap_add cap_drop cgroup cgroup_parent command configs container_name credential_spec
	depends_on deploy develop device_cgroup_rules devices dns dns_opt dns_search domainname driver_opts entrypoint
	env_file environment expose extends external_links extra_hosts gpus group_add healthcheck hostname image init ipc
	isolation labels label_file links logging mac_address mem_limit mem_reservation mem_swappiness memswap_limit models
	network_mode networks oom_kill_disable oom_score_adj pid pids_limit platform ports post_start pre_stop privileged
	profiles provider pull_policy read_only restart runtime scale secrets security_opt shm_size stdin_open
	stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts volumes
	volumes_from working_dir`

// TestComposeWords checks that each word of a service in Compose is a field of a container, or is refused with a hint.
func TestComposeWords(t *testing.T) {
	for word := range strings.FieldsSeq(composeService) {
		// A list of strings is the value that Compose and a pod file have least in common.
		_, problems := Parse("web.toml", []byte(appHead+word+" = [\"a\"]\n"))
		for _, p := range problems {
			if p.Hint == "" && strings.HasSuffix(p.Path, word) && p.Message == unknownField {
				t.Errorf("%s has no hint", word)
			}
		}
	}
}

// TestComposeWordsOfPod checks that these words have a hint in the pod too, as strings and as lists.
func TestComposeWordsOfPod(t *testing.T) {
	for word := range strings.FieldsSeq(composeService) {
		for _, value := range []string{`"a"`, `["a=b"]`} {
			_, problems := Parse("web.toml", []byte(word+" = "+value+"\n"+appHead))
			for _, p := range problems {
				isWord := p.Path == word || p.Path == word+"[0]"
				if isWord && p.Hint == "" && (p.Message == unknownField || p.Message == "must be a table, found array" || p.Path != word) {
					t.Errorf("%s = %s has no hint: %s", word, value, p.Message)
				}
			}
		}
	}
	for text, want := range map[string]string{
		`working_dir = "/a"`:       "set workingDir in containers",
		`labels = ["a=b"]`:         `write labels = { a = "b" }`,
		`annotations = ["a.b/c="]`: `write annotations = { "a.b/c" = "" }`,
		`secrets = ["a"]`:          composeWords["secrets"],
	} {
		_, problems := Parse("web.toml", []byte(text+"\n"+appHead))
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Hint == want }) {
			t.Errorf("%s: %+v, want the hint %q", text, problems, want)
		}
	}
}

// TestComposeHints checks that the hints name fields that exist.
func TestComposeHints(t *testing.T) {
	names := map[string]bool{}
	var collect func(reflect.Type)
	collect = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for name, i := range fieldsOf(typ) {
			if !names[typ.Name()+"."+name] {
				names[typ.Name()+"."+name], names[name] = true, true
				collect(typ.Field(i).Type)
			}
		}
	}
	collect(reflect.TypeFor[Pod]())
	field := regexp.MustCompile(`\b[a-z]+[A-Z][A-Za-z]*\b`)
	for word, hint := range composeWords {
		if strings.Contains(hint, "podstead.toml") {
			continue
		}
		if i := slices.IndexFunc(field.FindAllString(hint, -1), func(f string) bool { return !names[f] }); i >= 0 {
			t.Errorf("%s: hint %q: there is no field %s", word, hint, field.FindAllString(hint, -1)[i])
		}
	}
}
