package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/compose/converter"
	"github.com/podstead/podstead/spec"
)

// composeHint is a Compose file that is converted with a hint, and the one that follows the hint: keys of the service web, or whole files.
type composeHint struct {
	hint, before, after string
	option              func(*compose.Request) // that the hint names; nil: none
}

// composeHints are the hints to Compose files, by a part of each. What they say about pod files and settings is in fieldsOfHints and
// settingsOfHints.
var composeHints = []composeHint{
	{hint: "build the image with another tool", before: "build: ."},
	{hint: "set image, and add it with", before: "build: ."},
	{hint: "and remove pull_policy", before: "pull_policy: build"},
	{hint: "write an absolute path, or a CDI", before: "devices: [vendor.com/class]", after: "devices: [vendor.com/class=name]"},
	{
		hint:   "set driver: cdi and device_ids",
		before: "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}",
		after:  "deploy: {resources: {reservations: {devices: [{driver: cdi, device_ids: [nvidia.com/gpu=all], capabilities: [gpu]}]}}}",
	},
	{hint: "set another target", before: "devices: ['/dev/kvm:/kvm']", after: "devices: [/dev/kvm]"},
	{hint: "limit the time with cpus", before: `cpuset: "0"`, after: "cpus: 1"},
	{hint: `set restart: "no"`, before: "deploy: {mode: replicated-job}", after: `restart: "no"`},
	{
		hint:   "set keepID in the pod file",
		before: "services: {web: {image: web}, log: {image: log, network_mode: \"service:web\", userns_mode: \"keep-id:uid=5\"}}",
	},
	{hint: "write keep-id:uid=NUMBER,gid=NUMBER, or", before: "userns_mode: keep-id", after: `userns_mode: "keep-id:uid=1000,gid=1000"`},
	{hint: "add gid, such as keep-id", before: `userns_mode: "keep-id:uid=5"`, after: `userns_mode: "keep-id:uid=5,gid=5"`},
	{
		hint:   "set pidsLimit in the pod file",
		before: "services: {web: {image: web}, log: {image: log, network_mode: \"service:web\", pids_limit: 5}}",
	},
	{hint: "use the names of the pods", before: "external_links: [db]"},
	{hint: "set containerLog in podstead.toml", before: "logging: {options: {max-size: 1m}}"},
	{
		hint:   "run the model as a service",
		before: "services: {web: {image: web, models: [llm]}}\nmodels: {llm: {model: ai/llm}}",
		after:  "services: {web: {image: web}, llm: {image: ai/llm}}",
	},
	{hint: "use the name of the service", before: "networks: {default: {ipv4_address: 192.0.2.2}}", after: "networks: [default]"},
	{hint: "set a higher memory limit", before: "oom_kill_disable: true", after: "mem_limit: 1g"},
	{
		hint:   "set it in the command of the hook",
		before: `post_start: [{command: ["true"], environment: {A: b}}]`, after: `post_start: [{command: [env, A=b, "true"]}]`,
	},
	{
		hint:   "run the program with a unit of systemd",
		before: "services: {web: {image: web}, vpn: {provider: {type: vpn}}}", after: "services: {web: {image: web}}",
	},
	{
		hint:   "set runtimeClassName in the pod file",
		before: "services: {web: {image: web}, log: {image: log, network_mode: \"service:web\", runtime: runsc}}",
	},
	{hint: "set ephemeral-storage in the pod file", before: "storage_opt: {size: 1G}"},
	{hint: "set it in the command", before: `umask: "0077"`, after: `command: sh -c "umask 0077; exec PROGRAM"`},
	{hint: "set hostUsers = false in the pod file", before: "userns_mode: auto"},
	{
		hint:   "mount the files with volumes",
		before: "develop: {watch: [{action: sync, path: ./src, target: /src}]}",
		after:  "volumes: [\"./src:/src\"], develop: {watch: [{action: sync, path: ./src, target: /src}]}",
	},
	{hint: "set imageArchives in the pod file", before: "develop: {watch: [{action: rebuild, path: ./src}]}"},
	{
		hint:   "use the action restart",
		before: "develop: {watch: [{action: sync+exec, path: ./src, target: /src, exec: {command: make}}]}",
		after:  "develop: {watch: [{action: restart, path: ./src}]}",
	},
	{hint: "set network_mode", before: "uts: host", after: "network_mode: host"},
	{
		hint:   "mount the volumes of the other service by name",
		before: "services: {web: {image: web, volumes_from: [db]}, db: {image: db, volumes: [\"data:/data\"]}}\nvolumes: {data: {}}",
		after:  "services: {web: {image: web, volumes: [\"data:/data\"]}, db: {image: db, volumes: [\"data:/data\"]}}\nvolumes: {data: {}}",
	},
	{
		hint:   "start a pod with a timer of systemd",
		before: "services: {web: {image: web}}\njobs: {backup: {image: backup, triggers: {manual: true}}}",
		after:  "services: {web: {image: web}}",
	},
	{
		hint:   "limit them with the firewall of the host",
		before: "services: {web: {image: web}}\nnetworks: {default: {internal: true}}", after: "services: {web: {image: web}}",
	},
	{
		hint:   "set file or environment",
		before: "services: {web: {image: web, secrets: [s]}}\nsecrets: {s: {external: true}}",
		after:  "services: {web: {image: web, secrets: [s]}}\nsecrets: {s: {file: text}}",
	},
	{
		hint:   "set file, content or environment",
		before: "services: {web: {image: web, configs: [c]}}\nconfigs: {c: {external: true}}",
		after:  "services: {web: {image: web, configs: [c]}}\nconfigs: {c: {content: text}}",
	},
	{
		hint:   "write the content without a template",
		before: "services: {web: {image: web, configs: [c]}}\nconfigs: {c: {content: text, template_driver: golang}}",
		after:  "services: {web: {image: web, configs: [c]}}\nconfigs: {c: {content: text}}",
	},
	{
		hint: "select a profile with --profile", before: "profiles: [debug]", after: "profiles: [debug]",
		option: func(q *compose.Request) { q.Profiles = []string{"debug"} },
	},
	{
		hint: "remove one of the dependencies from depends_on",
		before: "services: {web: {image: web, depends_on: [db]}, db: {image: db}, " +
			"agent: {image: agent, network_mode: \"service:db\", depends_on: [web]}}",
		after: "services: {web: {image: web, depends_on: [db]}, db: {image: db}, agent: {image: agent, network_mode: \"service:db\"}}",
	},
	{
		hint:   "rename one of them",
		before: "services: {my_web: {image: web}, my-web: {image: web}}", after: "services: {web: {image: web}, my-web: {image: web}}",
	},
	{
		hint:   "rename the alias",
		before: "services: {web: {image: web, links: [\"db:cache\"]}, db: {image: db}, cache: {image: cache}}",
		after:  "services: {web: {image: web, links: [\"db:data\"]}, db: {image: db}, cache: {image: cache}}",
	},
	{
		hint: "at the top level of the file", before: "volumes: [\"data:/data\"]",
		after: "services: {web: {image: web, volumes: [\"data:/data\"]}}\nvolumes: {data: {}}",
	},
	{hint: "remove one of them", before: "cpus: 1, deploy: {resources: {limits: {cpus: 2}}}", after: "cpus: 1"},
	{
		hint: "use the name ", before: "services: {web: {image: web}, my.db: {image: db}}",
		after: "services: {web: {image: web}, db: {image: db}}",
	},
	{
		hint: `set its restart to "no" or "on-failure"`,
		before: "services: {web: {image: web, depends_on: {task: {condition: service_completed_successfully}}}, " +
			"task: {image: task, restart: always}}",
		after: "services: {web: {image: web, depends_on: {task: {condition: service_completed_successfully}}}, " +
			"task: {image: task, restart: on-failure}}",
	},
	{
		hint: "set restart: always",
		before: "services: {web: {image: web, network_mode: \"service:db\", depends_on: {db: {condition: service_healthy}}}, " +
			"db: {image: db, healthcheck: {test: db}}}",
		after: "services: {web: {image: web, network_mode: \"service:db\", depends_on: {db: {condition: service_healthy}}}, " +
			"db: {image: db, restart: always, healthcheck: {test: db}}}",
	},
	{hint: "set it to the program", before: "entrypoint: []", after: "entrypoint: web"},
	{hint: "set the entrypoint to the program", before: "command: []", after: "entrypoint: web"},
	{hint: "set pull_policy: always", before: "pull_policy: daily", after: "pull_policy: always"},
	{hint: "remove platform", before: "platform: linux/s390x"},
	{hint: "limit it with the firewall of the host", before: "network_mode: none"},
	{
		hint:   "use service:NAME",
		before: "services: {web: {image: web, network_mode: \"container:db\"}, db: {image: db}}",
		after:  "services: {web: {image: web, network_mode: \"service:db\"}, db: {image: db}}",
	},
	{hint: "set hostname: ", before: "hostname: My_web", after: "hostname: my-web"},
	{hint: "write its number", before: "group_add: [audio]", after: `group_add: ["29"]`},
	{hint: "use the driver journald", before: "logging: {driver: gelf}", after: "logging: {driver: journald}"},
	{
		hint:   "set also network_mode: ",
		before: "services: {web: {image: web, pid: \"service:db\"}, db: {image: db}}",
		after:  "services: {web: {image: web, pid: \"service:db\", network_mode: \"service:db\"}, db: {image: db}}",
	},
	{hint: "write an address of the host", before: `extra_hosts: ["host:host-gateway"]`, after: `extra_hosts: ["host:192.0.2.1"]`},
	{hint: "write its test", before: "healthcheck: {interval: 1s}", after: "healthcheck: {interval: 1s, test: web}"},
	{hint: "publish a range, such as", before: `ports: ["80:80"], scale: 2`, after: `ports: ["80-81:80"], scale: 2`},
	{
		hint:   "write one with the commands of all",
		before: "pre_stop: [{command: [a]}, {command: [b]}]", after: `pre_stop: [{command: [sh, -c, "a; b"]}]`,
	},
	{hint: "use a named volume or a path", before: "volumes: [{type: npipe, source: /a, target: /a}]", after: `volumes: ["/a:/a"]`},
	{
		hint:   "set the name of one of them",
		before: "services: {web: {image: web, volumes: [\"a_b:/a\", \"a-b:/b\"]}}\nvolumes: {a_b: , a-b: }",
		after:  "services: {web: {image: web, volumes: [\"a_b:/a\", \"a-b:/b\"]}}\nvolumes: {a_b: {name: other}, a-b: }",
	},
	{
		hint: "mount it on the host, and use its path",
		before: "services: {web: {image: web, volumes: [\"data:/data\"]}}\n" +
			"volumes: {data: {driver_opts: {type: nfs, o: addr=192.0.2.1, device: \":/data\"}}}",
		after: "services: {web: {image: web, volumes: [\"/mnt/data:/data\"]}}",
	},
	{
		hint:   "set it, or write it into .env",
		before: "services: {web: {image: web, secrets: [s]}}\nsecrets: {s: {environment: TOKEN}}",
		after:  "services: {web: {image: web, secrets: [s]}}\nsecrets: {s: {environment: TOKEN}}",
		option: func(q *compose.Request) { q.Environment = []string{"TOKEN=text"} },
	},
	{hint: "write the numbers, such as 1000:1000", before: "user: app", after: "user: 1000:1000"},
	{hint: "copy it to seccomp/ of the configuration directory", before: "security_opt: [\"seccomp:web.json\"]"},
	{
		hint: "name others with --allow-dir", before: "env_file: ../outside/env", after: "env_file: ../outside/env",
		option: func(q *compose.Request) { q.AllowedDirs = []string{filepath.Join(q.Dir, "../outside")} },
	},
	{
		hint: "accept it with --allow-loss", before: "cgroup_parent: a", after: "cgroup_parent: a",
		option: func(q *compose.Request) { q.AllowLoss = true },
	},
	{
		hint: "accept the loss with --allow-loss", before: "uts: host", after: "uts: host",
		option: func(q *compose.Request) { q.AllowLoss = true },
	},
}

// TestHintsOfComposeFiles converts a Compose file for each hint, and the one that follows it, which has no errors and not this hint.
func TestHintsOfComposeFiles(t *testing.T) {
	var parts []string
	for _, h := range composeHints {
		parts = append(parts, h.hint)
		t.Run(h.hint, func(t *testing.T) {
			has := func(r *compose.Result) bool {
				return slices.ContainsFunc(r.Problems, func(p spec.Problem) bool { return strings.Contains(p.Hint, h.hint) })
			}
			q := composeRequest(t, h.before)
			if r := converter.Convert(t.Context(), q); !has(r) {
				t.Fatalf("no hint for\n%s\n%v", h.before, r.Problems)
			}
			q = composeRequest(t, h.after)
			if h.option != nil {
				h.option(q)
			}
			if r := converter.Convert(t.Context(), q); has(r) || r.Manifest == nil {
				t.Errorf("not taken:\n%s\n%v", h.after, r.Problems)
			}
		})
	}
	checkFollowed(t, parts, "composeHints", func(h foundHint) bool { return aboutCompose(&h) })
}

// composeRequest writes a project with a file text in its directory, and one outside.
func composeRequest(t *testing.T, file string) *compose.Request {
	t.Helper()
	if !strings.HasPrefix(file, "services:") {
		file = "services: {web: {image: web, " + file + "}}"
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"shop/compose.yaml": file, "shop/text": "text", "outside/env": "A=b\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &compose.Request{
		Files: []string{filepath.Join(dir, "shop", "compose.yaml")}, Names: []string{"compose.yaml"}, Dir: filepath.Join(dir, "shop"),
	}
}
