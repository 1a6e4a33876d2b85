package changetest

import "slices"

// handler is a field of a probe or of a hook, as the lines in its table.
type handler struct{ field, table, before, after string }

// requests are the fields of the handlers that probes and hooks have.
var requests = []handler{
	{"exec.command", "exec.command = [%s]", `"true"`, `"true", "x"`},
	{"httpGet.path", "httpGet = { port = 8080, path = %s }", `"/a"`, `"/b"`},
	{"httpGet.port", "httpGet = { port = %s }", "8080", "8081"},
	{"httpGet.host", "httpGet = { port = 8080, host = %s }", `"127.0.0.1"`, `"127.0.0.2"`},
	{"httpGet.scheme", "httpGet = { port = 8080, scheme = %s }", `"HTTP"`, `"HTTPS"`},
	{"httpGet.httpHeaders[].name", "httpGet = { port = 8080, httpHeaders = [{ name = %s, value = \"1\" }] }", `"X-A"`, `"X-B"`},
	{"httpGet.httpHeaders[].value", "httpGet = { port = 8080, httpHeaders = [{ name = \"X-A\", value = %s }] }", `"1"`, `"2"`},
}

// checks are the fields of probes.
var checks = []handler{
	{"tcpSocket.port", "tcpSocket = { port = %s }", "8080", "8081"},
	{"tcpSocket.host", "tcpSocket = { port = 8080, host = %s }", `"127.0.0.1"`, `"127.0.0.2"`},
	{"grpc.port", "grpc = { port = %s }", "8080", "8081"},
	{"grpc.service", "grpc = { port = 8080, service = %s }", `"a"`, `"b"`},
	{"periodSeconds", `exec.command = ["true"], periodSeconds = %s`, "10", "20"},
	{"timeoutSeconds", `exec.command = ["true"], timeoutSeconds = %s`, "1", "2"},
	{"failureThreshold", `exec.command = ["true"], failureThreshold = %s`, "3", "4"},
}

func handlerTemplates() []template {
	var list []template
	for _, kind := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		field := "containers[]." + kind
		add := func(h handler, delay string) {
			// The delay keeps a probe that would fail from restarting the container.
			list = append(list, template{
				field: field + "." + h.field, app: kind + " = { " + h.table + ", initialDelaySeconds = " + delay + " }",
				before: h.before, after: h.after, effect: inPlace,
			})
		}
		for _, h := range slices.Concat(requests, checks) {
			add(h, "3600")
		}
		add(handler{"initialDelaySeconds", `exec.command = ["true"]`, "3600", "3000"}, "%s")
		if kind == "readinessProbe" {
			add(handler{"successThreshold", `exec.command = ["true"], successThreshold = %s`, "1", "2"}, "3600")
		} else {
			add(handler{"terminationGracePeriodSeconds", `exec.command = ["true"], terminationGracePeriodSeconds = %s`, "1", "2"}, "3600")
		}
		list = append(list,
			template{field: field, app: "%s", after: kind + ` = { exec.command = ["true"], initialDelaySeconds = 3600 }`, effect: inPlace})
	}
	for _, hook := range []string{"postStart", "preStop"} {
		for _, h := range append(slices.Clip(requests), handler{"sleep.seconds", "sleep = { seconds = %s }", "0.1", "0.2"}) {
			list = append(list, template{
				field: "containers[].lifecycle." + hook + "." + h.field, app: "lifecycle." + hook + " = { " + h.table + " }",
				before: h.before, after: h.after, effect: inPlace,
				fails: hook == "postStart" && h.field[:4] == "http", // no server answers, and the container is killed
			})
		}
	}
	return append(list,
		template{
			field: "containers[].lifecycle.stopSignal", app: "lifecycle.stopSignal = %s", before: `"SIGINT"`, after: `"SIGUSR1"`,
			effect: inPlace,
		},
		template{field: "containers[].lifecycle", app: "%s", after: `lifecycle.preStop.sleep.seconds = 0.1`, effect: inPlace},
		template{field: "containers[].lifecycle", app: "%s", after: `lifecycle.postStart.sleep.seconds = 0.1`, effect: restart},
		template{field: "containers[].lifecycle", app: "%s", before: `lifecycle.postStart.sleep.seconds = 0.1`, effect: inPlace},
	)
}
