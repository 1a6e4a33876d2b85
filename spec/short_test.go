package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forms are the short forms with their only long form: lines of the pod, and of its container.
var forms = []struct{ pod, container, longPod, longContainer string }{
	{container: `ports = ["80"]`, longContainer: `ports = [{ containerPort = 80 }]`},
	{container: `ports = ["8080:80"]`, longContainer: `ports = [{ containerPort = 80, hostPort = 8080 }]`},
	{
		container: `ports = ["127.0.0.1:5432:5432", "53:53/udp"]`,
		longContainer: `ports = [{ containerPort = 5432, hostPort = 5432, hostIP = "127.0.0.1" }, ` +
			`{ containerPort = 53, hostPort = 53, protocol = "UDP" }]`,
	},
	{container: `ports = ["80/tcp"]`, longContainer: `ports = [{ containerPort = 80, protocol = "TCP" }]`},
	{
		container:     `ports = ["[2001:db8::1]:80:80/sctp"]`,
		longContainer: `ports = [{ containerPort = 80, hostPort = 80, hostIP = "2001:db8::1", protocol = "SCTP" }]`,
	},
	{
		container:     `ports = ["81", { name = "http", containerPort = 80 }]`,
		longContainer: `ports = [{ containerPort = 81 }, { name = "http", containerPort = 80 }]`,
	},
	{container: `ulimits = ["nofile=1024"]`, longContainer: `ulimits = [{ name = "nofile", soft = 1024 }]`},
	{
		container:     `ulimits = ["nofile=1024:65536", "core=-1"]`,
		longContainer: `ulimits = [{ name = "nofile", soft = 1024, hard = 65536 }, { name = "core", soft = -1 }]`,
	},
	{container: `readinessProbe.httpGet = ":8080/healthz"`, longContainer: `readinessProbe.httpGet = { path = "/healthz", port = 8080 }`},
	{container: `readinessProbe.httpGet = ":8080"`, longContainer: `readinessProbe.httpGet.port = 8080`},
	{
		container: "ports = [{ name = \"http\", containerPort = 80 }]\nlivenessProbe.httpGet = \":http/a?b=c&d#e\"",
		longContainer: "ports = [{ name = \"http\", containerPort = 80 }]\n" +
			"livenessProbe.httpGet = { path = \"/a?b=c&d#e\", port = \"http\" }",
	},
	{
		container:     `startupProbe.httpGet = "https://:8443/healthz"`,
		longContainer: `startupProbe.httpGet = { path = "/healthz", port = 8443, scheme = "HTTPS" }`,
	},
	{
		container:     `lifecycle.preStop.httpGet = "http://:80/stop"`,
		longContainer: `lifecycle.preStop.httpGet = { path = "/stop", port = 80, scheme = "HTTP" }`,
	},
	{container: `readinessProbe.tcpSocket = 5432`, longContainer: `readinessProbe.tcpSocket.port = 5432`},
	{
		container:     "ports = [{ name = \"pg\", containerPort = 80 }]\nreadinessProbe.tcpSocket = \"pg\"",
		longContainer: "ports = [{ name = \"pg\", containerPort = 80 }]\nreadinessProbe.tcpSocket.port = \"pg\"",
	},
	{container: `readinessProbe.grpc = 9000`, longContainer: `readinessProbe.grpc.port = 9000`},
	{
		container:     `readinessProbe = { exec = ["pg_isready", "-U", "app"], periodSeconds = 5 }`,
		longContainer: `readinessProbe = { exec = { command = ["pg_isready", "-U", "app"] }, periodSeconds = 5 }`,
	},
	{container: `lifecycle.postStart.exec = ["true"]`, longContainer: `lifecycle.postStart.exec.command = ["true"]`},
	{
		pod: `volumes = { html = "./html", data = {} }`, container: `volumeMounts = { html = "/html", data = "/data" }`,
		longPod: `volumes = [{ name = "html", hostPath = { path = "./html" } }, ` +
			`{ name = "data", persistentVolumeClaim = { claimName = "data" } }]`,
		longContainer: `volumeMounts = [{ name = "html", mountPath = "/html" }, { name = "data", mountPath = "/data" }]`,
	},
	{
		pod: "volumes.a = \"/srv\"\nvolumes.b = \"../b\"\nvolumes.c = \".\"\nvolumes.d.emptyDir = {}\n" +
			"volumes.e.persistentVolumeClaim = { claimName = \"other\" }",
		longPod: `volumes = [{ name = "a", hostPath = { path = "/srv" } }, { name = "b", hostPath = { path = "../b" } }, ` +
			`{ name = "c", hostPath = { path = "." } }, { name = "d", emptyDir = {} }, ` +
			`{ name = "e", persistentVolumeClaim = { claimName = "other" } }]`,
	},
	{
		pod: "secrets.db = \"db.env\"\nsecrets.tls.data.key = \"k\"", container: `env.A.secretKeyRef = { name = "db", key = "a" }`,
		longPod:       `secrets = [{ name = "db", envFile = "db.env" }, { name = "tls", data = { key = "k" } }]`,
		longContainer: `env = [{ name = "A", valueFrom = { secretKeyRef = { name = "db", key = "a" } } }]`,
	},
	{
		container:     `secrets.db = "db.env"`,
		longPod:       `secrets = [{ name = "db", envFile = "db.env" }]`,
		longContainer: `envFrom = [{ secretRef = { name = "db" } }]`,
	},
	{
		container:     `envFile = "conf/App_1.env"`,
		longPod:       `configMaps = [{ name = "app-1.env", envFile = "conf/App_1.env" }]`,
		longContainer: `envFrom = [{ configMapRef = { name = "app-1.env" } }]`,
	},
	{
		container:     `envFile = ".env"`,
		longPod:       `configMaps = [{ name = "env", envFile = ".env" }]`,
		longContainer: `envFrom = [{ configMapRef = { name = "env" } }]`,
	},
	{
		container: "secrets = { db = \"db.env\", tls = \"tls.env\" }\nenvFile = \"app.env\"",
		longPod: `configMaps = [{ name = "app.env", envFile = "app.env" }]` + "\n" +
			`secrets = [{ name = "db", envFile = "db.env" }, { name = "tls", envFile = "tls.env" }]`,
		longContainer: `envFrom = [{ secretRef = { name = "db" } }, { secretRef = { name = "tls" } }, ` +
			`{ configMapRef = { name = "app.env" } }]`,
	},
}

func formFile(pod, container string) []byte {
	return []byte("name = \"web\"\n" + pod + "\n[[containers]]\nname = \"app\"\nimage = \"busybox\"\n" + container + "\n")
}

// TestShortForms checks that each short form is equal to its long form, and that each is converted to the other.
func TestShortForms(t *testing.T) {
	for _, form := range forms {
		short, long := formFile(form.pod, form.container), formFile(form.longPod, form.longContainer)
		want := mustParse(t, "/a/web.toml", string(long))
		if diff := cmp.Diff(want, mustParse(t, "/a/web.toml", string(short))); diff != "" {
			t.Errorf("%s\nis not its long form (-long +short):\n%s", short, diff)
			continue
		}
		for _, given := range [][]byte{short, long} {
			toLong, _ := Options{}.Convert("/a/web.toml", given, false)
			toShort, _ := Options{}.Convert("/a/web.toml", given, true)
			for notation, text := range map[string][]byte{"long": toLong, "short": toShort} {
				if diff := cmp.Diff(want, mustParse(t, "/a/web.toml", string(text))); diff != "" {
					t.Errorf("%s\nconverted to the %s form is another pod (-want +got):\n%s\n%s", given, notation, diff, text)
				}
			}
			for line := range strings.SplitSeq(strings.TrimSpace(form.longPod+"\n"+form.longContainer), "\n") {
				if key, _, _ := strings.Cut(line, " "); strings.Contains(string(toShort), "\n"+line+"\n") &&
					!strings.Contains(string(short), line) {
					t.Errorf("%s\nkeeps the long form of %s:\n%s", given, key, toShort)
				}
			}
		}
		a, _ := Options{}.Convert("/a/web.toml", short, true)
		b, _ := Options{}.Convert("/a/web.toml", long, true)
		if string(a) != string(b) {
			t.Errorf("two short forms of one pod:\n%s\n%s", a, b)
		}
	}
}

// TestNoShortForm checks the problems of values that are almost short forms, and that following the hint, if it shows the value, gives a
// valid file.
func TestNoShortForm(t *testing.T) {
	const (
		ports   = `Invalid value: %s: must be ` + portForms
		request = `Invalid value: %s: must be ` + requestForms
	)
	of := func(format, value string) string { return fmt.Sprintf(format, `"`+value+`"`) }
	for _, test := range []struct{ line, at, path, message, hint string }{
		{`ports = ["8000-8010:80"]`, "10", "ports[0]", of(ports, "8000-8010:80"), "write an entry for each port"},
		{`ports = ["8000-8010"]`, "10", "ports[0]", of(ports, "8000-8010"), "write an entry for each port"},
		{`ports = ["80:80", "53:53/UDP"]`, "19", "ports[1]", of(ports, "53:53/UDP"), `write "53:53/udp"`},
		{`ports = ["80/http"]`, "10", "ports[0]", of(ports, "80/http"), ""},
		{`ports = [" 80"]`, "10", "ports[0]", of(ports, " 80"), `write "80"`},
		{`ports = ["fe80::1:80:80"]`, "10", "ports[0]", of(ports, "fe80::1:80:80"), `write "[fe80::1]:80:80"`},
		{`ports = ["127.0.0.1::80"]`, "10", "ports[0]", of(ports, "127.0.0.1::80"), "write the port of the host: it is not chosen"},
		{`ports = [":80"]`, "10", "ports[0]", of(ports, ":80"), "write the port of the host: it is not chosen"},
		{`ports = ["${PORT}:80"]`, "10", "ports[0]", of(ports, "${PORT}:80"), "write the number: variables are not replaced"},
		{`ports = ["127.0.0.1:80"]`, "10", "ports[0]", of(ports, "127.0.0.1:80"), ""},
		{`ports = ["localhost:80:80"]`, "10", "ports[0]", of(ports, "localhost:80:80"), ""},
		{`ports = ["http"]`, "10", "ports[0]", of(ports, "http"), `write { name = "http", containerPort = NUMBER }`},
		{`ports = ["080"]`, "10", "ports[0]", of(ports, "080"), ""},
		{`ports = ["0"]`, "10", "ports[0]", of(ports, "0"), ""},
		{`ports = [""]`, "10", "ports[0]", of(ports, ""), ""},
		{`ports = ["70000:80"]`, "10", "ports[0]", `Invalid value: "70000:80": ports must be between 1 and 65535, inclusive`, ""},
		{`ports = ["1.2.3.400:80:80"]`, "10", "ports[0]", `Invalid value: "1.2.3.400:80:80": "1.2.3.400" must be an IP address`, ""},
		{`ports = ["[1.2.3.4]:80:80"]`, "10", "ports[0]", `Invalid value: "[1.2.3.4]:80:80": "[1.2.3.4]" must be an IP address`, ""},
		{`ports = [80]`, "10", "ports[0]", "must be a table or a string, found integer 80", `write "80"`},
		{`ports = [0x50]`, "10", "ports[0]", "must be a table or a string, found integer 0x50", ``},
		{`ports = "80:80"`, "9", "ports", `must be an array, found string "80:80"`, `write ports = ["80:80"]`},
		{`ports = 80`, "9", "ports", `must be an array, found integer 80`, `write ports = ["80"]`},
		{`ports = ["80:80", "80:81"]`, "19", "ports[1]", `Duplicate value: host port 80/TCP`, ""},

		{
			`livenessProbe.httpGet = "/healthz"`, "25", "livenessProbe.httpGet", of(request, "/healthz"),
			`write the port before the path: ":8080/healthz"`,
		},
		{
			`livenessProbe.httpGet = "http://localhost:8080/healthz"`, "25", "livenessProbe.httpGet",
			of(request, "http://localhost:8080/healthz"),
			`write ":8080/healthz": the request goes to the pod; set host in the long form for another host`,
		},
		{
			`livenessProbe.httpGet = "https://localhost"`, "25", "livenessProbe.httpGet", of(request, "https://localhost"),
			`write "https://:443": the request goes to the pod; set host in the long form for another host`,
		},
		{`livenessProbe.httpGet = "8080"`, "25", "livenessProbe.httpGet", of(request, "8080"), `write ":8080"`},
		{
			`livenessProbe.httpGet = 8080`, "25", "livenessProbe.httpGet", "must be a string or a table, found integer 8080",
			`write httpGet = ":8080/"`,
		},
		{`livenessProbe.httpGet = ":0/"`, "25", "livenessProbe.httpGet", `Invalid value: ":0/": "0" ` + badPort, ""},
		{`livenessProbe.httpGet = ":80/\u0000"`, "25", "livenessProbe.httpGet", `must not contain a NUL character`, ""},
		{
			`livenessProbe.tcpSocket = ":5432"`, "27", "livenessProbe.tcpSocket", `Invalid value: ":5432": must be a port number or name`,
			`write tcpSocket = 5432`,
		},
		{
			`livenessProbe.tcpSocket = "5432"`, "27", "livenessProbe.tcpSocket", `Invalid value: "5432": must be a port number or name`,
			`write tcpSocket = 5432`,
		},
		{
			`livenessProbe.tcpSocket = ":pg"`, "27", "livenessProbe.tcpSocket", `Invalid value: ":pg": must be a port number or name`,
			`write tcpSocket = "pg"`,
		},
		{`livenessProbe.tcpSocket = 0`, "27", "livenessProbe.tcpSocket", badPort, ""},
		{`livenessProbe.tcpSocket = ""`, "27", "livenessProbe.tcpSocket", badPort, ""},
		{
			`livenessProbe.grpc = "9000"`, "22", "livenessProbe.grpc", `must be a port number or a table, found string "9000"`,
			`write grpc = 9000`,
		},
		{`livenessProbe.grpc = 70000`, "22", "livenessProbe.grpc", `must be between 1 and 65535, inclusive`, ""},
		{
			`livenessProbe.exec = "pg_isready -U app"`, "22", "livenessProbe.exec",
			`must be an array of strings or a table, found string "pg_isready -U app"`, `write exec = ["pg_isready", "-U", "app"]`,
		},
		{`livenessProbe.exec = []`, "15", "livenessProbe.exec", `must not be empty`, ""},
		{`livenessProbe.exec = ["a", 1]`, "28", "livenessProbe.exec[1]", "must be a string, found integer 1", `write "1"`},
		{`lifecycle.preStop.sleep = 5`, "27", "lifecycle.preStop.sleep", "must be a table, found integer 5", ""},
		{`livenessProbe = ":80/"`, "17", "livenessProbe", `must be a table, found string ":80/"`, ""},

		{
			`envFile = ["a.env", "b.env"]`, "1", "envFile", "must be a string, found array",
			"write envFile for one file, and envFrom with entries of configMaps for more",
		},
		{
			`envFile = "/"`, "11", "envFile", `the name of the file is no name of a config map: "/"`,
			"write configMaps in the pod, and envFrom in the container",
		},
		{
			`secrets.db = 123456`, "14", "secrets.db", "must be the path of a file with lines KEY=value, found integer",
			"write the values into a file, and its path here",
		},
		{
			`secrets.db.data.a = "b"`, "9", "secrets.db", "must be the path of a file with lines KEY=value, found table",
			"write the table in secrets of the pod, and envFrom in the container",
		},
		{`secrets.DB = "db.env"`, "9", "secrets.DB", "", ""},
		{`secrets = ["a"]`, "1", "secrets", unknownField, composeWords["secrets"]},
	} {
		check(t, "/a/web.toml", "", test.line, "containers[0]."+test.path, test.at, test.message, test.hint)
	}
	for _, test := range []struct{ line, at, path, message, hint string }{
		{
			`volumes.html = "html"`, "16", "volumes.html", `Invalid value: "html": must be a path that begins with /, ./ or ../`,
			`write {} for a persistent volume, or "./html" for a directory beside the pod file`,
		},
		{
			`volumes.html = "~/html"`, "16", "volumes.html", `Invalid value: "~/html": must be a path that begins with /, ./ or ../`,
			`write {} for a persistent volume`,
		},
		{
			`volumes.html = ""`, "16", "volumes.html", `Invalid value: "": must be a path that begins with /, ./ or ../`,
			"write {} for a persistent volume",
		},
		{`volumes.html = true`, "16", "volumes.html", "must be a path of the host or a table, found boolean true", ""},
		{`volumes.html = ["a"]`, "9", "volumes.html", "must be a path of the host or a table, found array", ""},
		{`volumes.html.nfs = {}`, "14", "volumes.html.nfs", "not supported: " + onNetwork.why, onNetwork.hint},
		{
			`volumes.html = { name = "a", emptyDir = {} }`, "18", "volumes.html.name",
			"Forbidden: the key of the table is the name of the volume", "delete this line",
		},
		{`volumes.Html = {}`, "9", "volumes.Html", "", ""},
		{`volumes = { name = "./a", emptyDir = {} }`, "11", "volumes", "must be an array of tables, found table", ""},
		{`volumes = ["data:/data"]`, "12", "volumes[0]", `must be a table, found string "data:/data"`, composeWords["volumes"]},
		{
			`secrets.db = 1`, "14", "secrets.db", "must be the path of a file with lines KEY=value, found integer",
			"write the values into a file, and its path here",
		},
		{
			`secrets.db = ""`, "14", "secrets.db", "must be the path of a file with lines KEY=value, found string",
			"write the values into a file, and its path here",
		},
	} {
		check(t, "/a/web.toml", test.line, "", test.path, test.at, test.message, test.hint)
	}
}

// check requires that a file with a line of its pod or of its container has one problem.
func check(t *testing.T, file, pod, container, path, column, message, hint string) {
	t.Helper()
	line := 6
	if pod != "" {
		line = 2
	}
	_, problems := Parse(file, formFile(pod, container))
	errs := problems.Errors()
	if len(errs) != 1 || errs[0].Path != path || message != "" && (errs[0].Message != message || errs[0].Hint != hint) ||
		errs[0].Line != line || fmt.Sprint(errs[0].Column) != column {
		t.Errorf("%s%s:\n%s\nwant %s:%d:%s: %s: %s\nhint: %s", pod, container, report(problems), file, line, column, path, message, hint)
	}
}

// TestSharedFiles checks env files that several containers use, and those that the pod declares too.
func TestSharedFiles(t *testing.T) {
	two := func(first, second string) string {
		return "[[containers]]\nname = \"a\"\nimage = \"i\"\n" + first + "\n[[containers]]\nname = \"b\"\nimage = \"i\"\n" + second + "\n"
	}
	same := mustParse(t, "/a/web.toml", two(`secrets.db = "db.env"`, `secrets.db = "./db.env"`))
	if len(same.Secrets) != 1 || len(same.Containers[1].EnvFrom) != 1 {
		t.Errorf("secrets %v, variables %v", same.Secrets, same.Containers[1].EnvFrom)
	}
	declared := mustParse(t, "/a/web.toml", "secrets.db = \"db.env\"\n"+two(`secrets.db = "db.env"`, ""))
	if len(declared.Secrets) != 1 || len(declared.Containers[0].EnvFrom) != 1 {
		t.Errorf("secrets %v, variables %v", declared.Secrets, declared.Containers[0].EnvFrom)
	}
	for _, text := range []string{
		two(`secrets.db = "db.env"`, `secrets.db = "other.env"`),
		two(`envFile = "a/app.env"`, `envFile = "b/app.env"`),
		"secrets.db.data.a = \"b\"\n" + two("", `secrets.db = "db.env"`),
	} {
		_, problems := Parse("/a/web.toml", []byte(text))
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Message, "Duplicate value: ") || problems[0].Line < 7 {
			t.Errorf("%s\n%v", text, report(problems))
		}
	}
	// All mentions of a file are replaced when the pod file moves.
	moved, err := Relocate("/a/web.toml", []byte(two(`secrets.db = "db.env"`, `secrets.db = "./db.env"`)+"[volumes]\nhtml = \"./html\"\n"))
	if err != nil || strings.Count(string(moved), `secrets.db = "/a/db.env"`) != 2 || !strings.Contains(string(moved), `html = "/a/html"`) {
		t.Errorf("%v\n%s", err, moved)
	}
}

// TestEnvFileOfContainer reads the file of the short form, and reports its problems and those of its absence.
func TestEnvFileOfContainer(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web.toml")
	text := formFile("", "envFile = \"app.env\"\nsecrets.db = \"db.env\"")
	_, problems := Accept(file, text)
	if len(problems) != 2 || problems[0].Path != "containers[0].envFile" || problems[1].Path != "containers[0].secrets.db" ||
		problems[0].Line != 6 || problems[0].Column != 11 || problems[1].Line != 7 || problems[1].Column != 14 {
		t.Errorf("%v", report(problems))
	}
	for name, content := range map[string]string{"app.env": "A=1\n", "db.env": "PASSWORD=hunter2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pod, problems := Accept(file, text)
	if pod == nil || len(problems) > 0 || pod.ConfigMaps[0].Data["A"] != "1" || string(pod.Secrets[0].Data["PASSWORD"]) != "hunter2" {
		t.Errorf("%v\n%+v", report(problems), pod)
	}
}

// TestManifestsHaveNoShortForms checks that a short form in a manifest is an error, and that the hint shows the long one.
func TestManifestsHaveNoShortForms(t *testing.T) {
	for _, test := range []struct{ line, hint string }{
		{`ports: ["8080:80"]`, `write {containerPort: 80, hostPort: 8080}`},
		{`readinessProbe: {httpGet: ":8080/healthz"}`, `write httpGet: {path: "/healthz", port: 8080}`},
		{`readinessProbe: {httpGet: "https://:8443"}`, `write httpGet: {port: 8443, scheme: "HTTPS"}`},
		{`readinessProbe: {tcpSocket: 5432}`, `write tcpSocket: {port: 5432}`},
		{`readinessProbe: {tcpSocket: pg}`, `write tcpSocket: {port: "pg"}`},
		{`readinessProbe: {grpc: 9000}`, `write grpc: {port: 9000}`},
		{`readinessProbe: {exec: [pg_isready, -U, app]}`, `write exec: {command: ["pg_isready", "-U", "app"]}`},
		{
			`envFile: app.env`,
			`set envFrom in the container with a configMapRef or secretRef, and envFile in an entry of configMaps or secrets of the pod`,
		},
		{`secrets: {db: db.env}`, "move it to spec"},
	} {
		_, problems := Parse("web.yaml", []byte(manifestHead+manifestTail+"    "+test.line+"\n"))
		errs := problems.Errors()
		if !slices.ContainsFunc(errs, func(p Problem) bool { return p.Hint == test.hint && p.Line == 9 }) {
			t.Errorf("%s\n%swant the hint %s", test.line, report(problems), test.hint)
		}
	}
	for line, hint := range map[string]string{
		`volumes: {html: ./html}`: `write volumes: [{name: "html", hostPath: {path: "./html"}}]`,
		`volumes: {data: {}}`:     `write volumes: [{name: "data", persistentVolumeClaim: {claimName: "data"}}]`,
		`secrets: {db: db.env}`:   `write secrets: [{name: "db", envFile: "FILE"}]`,
	} {
		_, problems := Parse("web.yaml", []byte(manifestHead+"  "+line+"\n"+manifestTail))
		if len(problems) != 1 || problems[0].Hint != hint || problems[0].Line != 6 {
			t.Errorf("%s\n%swant the hint %s", line, report(problems), hint)
		}
	}
}
