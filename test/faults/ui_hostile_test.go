//go:build e2e

package faults

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/browser"
)

// markup would run a script and be found as an element, if it were parsed.
const markup = `</title></script></p>"'><img src=x class=parsed onerror="window.parsed=1"><b class=parsed>x</b>` +
	`<script>window.parsed=1</script>`

// hostileDaemon serves a daemon on a socket whose texts all have markup: names, labels, images, states, events, logs, versions, paths.
func hostileDaemon(t *testing.T, socket string) {
	t.Helper()
	type object = map[string]any
	now := time.Now()
	cause := object{"kind": markup, "text": markup, "hint": markup, "container": markup}
	why := object{
		"pod": markup, "uid": "u", "text": markup, "state": markup, "cause": cause, "file": markup, "escalation": markup,
		"notUpdated": markup, "notDurable": markup, "notRemoved": markup, "stopBy": markup,
		"containers": []object{{
			"name": markup, "role": markup, "text": markup, "state": markup, "reason": markup, "cause": cause,
			"restartCauses": []object{{"cause": cause, "count": 1, "last": now}},
			"probes":        []object{{"probe": markup, "outcome": markup, "time": now, "seconds": 0.1}},
			"lastExit":      object{"code": 1, "reason": markup, "signal": markup, "meaning": markup, "finishedAt": now},
			"evidence": object{
				"log": []string{markup}, "terminationMessage": markup, "probeOutput": markup, "probe": markup, "memoryLimitBytes": 1,
			},
		}},
	}
	pod := api.Pod{
		Metadata: api.Metadata{Name: markup, UID: "u", Labels: map[string]string{markup: markup}, CreationTimestamp: now},
		Status: api.PodStatus{
			Phase: api.PhasePending, Reason: markup, Message: markup, Pulling: map[string]api.Progress{markup: {Archive: markup, Done: 1}},
			Conditions:        []api.Condition{{Type: api.FileAccepted, Status: "False", Reason: markup, Message: markup}},
			ContainerStatuses: []api.ContainerStatus{{Name: markup, Image: markup, ImageID: markup}},
		},
	}
	event := func(seq int, kind api.EventKind, container string) object {
		return object{
			"seq": seq, "cause": seq - 1, "time": now.Add(time.Duration(seq-10) * time.Second), "type": "Warning", "kind": kind,
			"reason": markup, "pod": markup, "uid": "u", "container": container, "message": markup,
			"fields": object{"code": markup, "reason": markup, "image": markup},
		}
	}
	line := object{"container": markup, "stream": markup, "time": now, "line": markup, "attempt": 1}
	stats := object{"pods": []object{{"podRef": object{"name": markup, "uid": "u"}, "memory": object{"workingSetBytes": 1 << 20}}}}
	usage := object{
		"filesystem": object{"path": markup, "size": 100, "used": 50},
		"items":      []object{{"type": markup}}, "images": []object{}, "containers": []object{}, "volumes": []object{},
	}
	mux := http.NewServeMux()
	for pattern, values := range map[string][]any{
		"/v1/version": {object{"version": markup, "runtime": markup, "instance": "i"}},
		"/v1/why":     {object{"items": []object{why}}}, "/v1/pods/{name}/why": {why}, "/v1/pods/{name}": {pod}, "/v1/stats": {stats},
		"/v1/events": {
			event(1, api.EventPodRestartRequested, ""), event(2, api.EventContainerStarted, markup),
			event(3, api.EventProbeFailed, markup), event(4, api.EventContainerFailed, markup),
		},
		"/v1/pods/{name}/output": {line}, "/v1/system/df": {usage},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			for _, v := range values {
				_ = json.NewEncoder(w).Encode(v) // the client is gone if that fails
			}
		})
	}
	mux.HandleFunc("/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("watch") == "" {
			_ = json.NewEncoder(w).Encode(api.PodList{Items: []api.Pod{pod}}) // the client is gone if that fails
			return
		}
		for _, change := range []api.PodChange{{Type: api.Added, Object: pod}, {Type: api.Listed}} {
			_ = json.NewEncoder(w).Encode(change) // the client is gone if that fails
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: deadline}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() { _, _ = server.Close(), <-served })
}

// TestPageMarkup opens all views of a daemon whose texts all have markup, and checks that no text becomes an element.
func TestPageMarkup(t *testing.T) {
	f := newFixture(t)
	socket := filepath.Join(t.TempDir(), "s")
	hostileDaemon(t, socket)
	network := browser.NewNetwork(t)
	b := browser.New(t, network, t.TempDir())
	p := b.Open(f.ui(network, "--allow-actions", "--socket", socket))
	shown := func(view string, more ...string) {
		t.Helper()
		for _, condition := range append(more, "document.querySelector('main').innerText.includes('onerror=')") {
			p.Await(condition)
		}
		p.Await("!window.parsed && !document.querySelector('.parsed, main img, main script, main b[class]')")
		if problems := p.Problems(); len(problems) > 0 {
			t.Errorf("%s: the console has %q", view, problems)
		}
	}
	shown("pods", "document.querySelector('tbody a')", "document.querySelector('tbody .why')?.innerText.includes('onerror=')")
	p.Await("(document.querySelector('tbody a').click(), location.hash.startsWith('#/pod/'))")
	shown("pod", "document.querySelector('.exit pre')", "document.querySelector('.chain li')", "document.querySelector('.strip')",
		"document.querySelector('.events td')", "document.querySelector('.timeline path[data-lane]')")
	p.Await("(document.querySelector('.timeline path[data-lane]').dispatchEvent(new MouseEvent('click', { bubbles: true })), true)")
	shown("an event", "document.querySelector('.nearby pre')?.innerText.includes('onerror=')")
	p.Await("(location.hash = '#/logs?pod=' + encodeURIComponent(document.querySelector('h1').childNodes[0].textContent), true)")
	shown("logs", "document.querySelector('.log .text')?.innerText.includes('onerror=')", "document.querySelector('.choice label')")
	p.Await("(([filter]) => (filter.value = 'onerror', filter.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))))" +
		"(document.querySelectorAll('input[type=search]'))")
	shown("search", "document.querySelector('.bar .note').innerText.startsWith('1 line with')")
	p.Go(p.URL("/#/host"))
	shown("host", "document.querySelectorAll('meter').length === 2", "document.querySelectorAll('main ul a').length === 2")
}

// rebind opens the address of the page by a name that resolves to it, in a browser that has the cookie and the key.
func rebind(t *testing.T, b *browser.Browser, host, token string) {
	t.Helper()
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open("http://" + net.JoinHostPort(rebound, port) + "/")
	p.Await("document.body.innerText.includes('the request is for another host')")
	for _, request := range []string{
		`"/"`, `"/api/pods", {headers: {"Podstead-Key": "x"}}`,
		`"/enter", {method: "POST", body: JSON.stringify({token: "` + token + `"})}`, `"/api/stop", {method: "POST", body: "{}"}`,
	} {
		p.Await("fetch(" + request + ").then((r) => r.status === 403)")
	}
	p.Close()
}

// rebound is a name that the browser resolves to the address of the page.
const rebound = "attacker.example"
