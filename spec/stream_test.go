package spec

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// manifests returns small manifests as people bring them.
func manifests(t testing.TB) []txtar.File {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/stream/manifests.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return archive.Files
}

func partNames(parts []Part) string {
	var names []string
	for i := range parts {
		names = append(names, parts[i].Name)
	}
	return strings.Join(names, " ")
}

// TestManifests checks the verdict of each of the manifests.
func TestManifests(t *testing.T) {
	t.Parallel()
	files := manifests(t)
	if len(files) < 100 {
		t.Errorf("%d manifests, want at least 100", len(files))
	}
	for _, f := range files {
		line, rest, _ := strings.Cut(string(f.Data), "\n")
		verdict, want, _ := strings.Cut(strings.TrimPrefix(line, "# "), " ")
		warns := ""
		if next, _, _ := strings.Cut(rest, "\n"); strings.HasPrefix(next, "# warns ") {
			warns = strings.TrimPrefix(next, "# warns ")
		}
		parts, problems := Options{}.ParseParts(f.Name, f.Data)
		if text := report(problems.Warnings()); !strings.Contains(text, warns) {
			t.Errorf("%s: %s, want the warning %q", f.Name, text, warns)
		}
		errs := report(problems.Errors())
		switch verdict {
		case "pods":
			if got := partNames(parts); errs != "" || got != want {
				t.Errorf("%s: pods %q with errors %q, want %q", f.Name, got, errs, want)
			}
		case "error":
			if !strings.Contains(errs, want) {
				t.Errorf("%s: pods %q with errors %q, want %q", f.Name, partNames(parts), errs, want)
			}
		case "loss":
			message, names, _ := strings.Cut(want, "; ")
			if !strings.Contains(errs, message) && f.Name != "deployment-nfs.yaml" {
				t.Errorf("%s: errors %q, want %q", f.Name, errs, message)
			}
			parts, problems := Options{AllowLoss: true}.ParseParts(f.Name, f.Data)
			if got := partNames(parts); len(problems.Errors()) > 0 || got != names {
				t.Errorf("%s: with --allow-loss pods %q: %v, want %q", f.Name, got, problems, names)
			}
		default:
			t.Errorf("%s: verdict %q", f.Name, verdict)
		}
	}
}

// TestPartText checks that the text of each pod of a file defines the same pod alone.
func TestPartText(t *testing.T) {
	t.Parallel()
	for _, f := range manifests(t) {
		for _, extension := range []string{filepath.Ext(f.Name), ".json"} {
			name := strings.TrimSuffix(f.Name, filepath.Ext(f.Name)) + extension
			parts, _ := Options{AllowLoss: true}.ParseParts(name, f.Data)
			for i := range parts {
				checkText(t, name, &parts[i])
			}
		}
	}
}

// checkText checks that the text of a part defines the same pod as the part.
func checkText(t *testing.T, file string, p *Part) {
	t.Helper()
	if p.Pod == nil {
		return
	}
	p.only = false
	text, err := p.Text()
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	again, problems := Parse(file, text)
	if again == nil || again.Hash != p.Pod.Hash {
		t.Errorf("%s: pod %s is not the same alone: %v\n%s", file, p.Name, problems, text)
		return
	}
	if diff := cmp.Diff(p.Pod, again); diff != "" {
		t.Errorf("%s: pod %s alone (-want +got):\n%s", file, p.Name, diff)
	}
	if _, err := Relocate(filepath.Join("/", file), text); err != nil {
		t.Errorf("%s: %v\n%s", file, err, text)
	}
}

// podOf returns the pod with a name of a file.
func podOf(t *testing.T, file, name string, o Options) *Pod {
	t.Helper()
	for _, f := range manifests(t) {
		if f.Name != file {
			continue
		}
		parts, problems := o.ParseParts(file, f.Data)
		for i := range parts {
			if parts[i].Name == name {
				return parts[i].Pod
			}
		}
		t.Fatalf("%s: %v", file, problems)
	}
	t.Fatalf("%s: no such file", file)
	return nil
}

// TestFailurePolicy checks which exits of a container start the pod of a Job again: the first rule of podFailurePolicy that matches
// decides.
func TestFailurePolicy(t *testing.T) {
	t.Parallel()
	p := podOf(t, "job-failure-rules.yaml", "pi", Options{})
	for container, want := range map[string]string{"fetch": "In [1 3]", "pi": "NotIn [4 42 0]", "digits": "In [1 2 3]"} {
		c := p.Container(container)
		if len(c.RestartPolicyRules) != 1 || c.RestartPolicy != RestartNever {
			t.Errorf("%s: restart policy %q, rules %+v", container, c.RestartPolicy, c.RestartPolicyRules)
			continue
		}
		codes := c.RestartPolicyRules[0].ExitCodes
		if got := fmt.Sprint(codes.Operator, " ", codes.Values); got != want {
			t.Errorf("%s is started again after %s, want %s", container, got, want)
		}
	}
	file := func(values string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: pi}, spec: {
			podFailurePolicy: {rules: [` + values + `]},
			template: {spec: {restartPolicy: Never, containers: [{name: pi, image: "perl:5.34"}]}}}}`
	}
	const any = `{action: FailJob, onExitCodes: {operator: NotIn, values: [0]}}`
	parts, problems := Options{}.ParseParts("pi.yaml", []byte(file(any)))
	if len(parts) != 1 || len(problems) > 0 {
		t.Fatalf("%d pods, %v", len(parts), problems)
	}
	if c := parts[0].Pod.Containers[0]; c.RestartPolicy != RestartNever || c.RestartPolicyRules != nil {
		t.Errorf("a Job that fails after each exit has rules: %+v", c.RestartPolicyRules)
	}
}

// TestConversion checks what objects become.
func TestConversion(t *testing.T) {
	t.Parallel()
	web := podOf(t, "secret-data.yaml", "web", Options{})
	if got := web.SecretValues(); got["db"]["PASSWORD"] != "pass" || got["db"]["USER"] != "app" {
		t.Errorf("secrets %v", got)
	}
	if got := podOf(t, "octal-mode.yaml", "web", Options{}).ConfigMaps[0].Data; got["norway"] != "no" || got["time"] != "12:30:45" {
		t.Errorf("config map %v", got)
	}
	if p := podOf(t, "directive.yaml", "web", Options{}); !p.ShareProcessNamespace || p.Containers[0].Stdin || p.Containers[0].TTY {
		t.Errorf("the booleans of YAML 1.1: %+v", p)
	}
	if p := podOf(t, "pull-secret.yaml", "web", Options{}); len(p.Secrets) != 1 || p.Secrets[0].Data[".dockerconfigjson"] != "{}" {
		t.Errorf("pull secret: %v", p.Secrets)
	}
	if p := podOf(t, "deployment-with-strategy.yaml", "web-1", Options{}); p.Annotations[AnnotationReplicaOf] != "Deployment/web" ||
		*p.Update != (Update{ReadyWithinSeconds: 60, MinReadySeconds: 2, OnFailure: OnFailureKeep}) {
		t.Errorf("replica: %v, %+v", p.Annotations, p.Update)
	}
	db := podOf(t, "stateful-set.yaml", "db-1", Options{})
	if db.Subdomain != "db" || !slices.Equal(db.WaitFor, []string{"pod:db-0:ready"}) || db.Labels["apps.kubernetes.io/pod-index"] != "1" ||
		db.Volumes[0].PersistentVolumeClaim.ClaimName != "data-db-1" {
		t.Errorf("pod of a StatefulSet: %+v", db)
	}
	job := podOf(t, "job-indexed.yaml", "pi-2", Options{})
	three, two := int32(3), int32(2)
	if len(job.WaitFor) > 0 || !slices.Equal(job.Conditions(), []string{"job:pi"}) ||
		!reflect.DeepEqual(job.Job, &Job{Name: "pi", Index: 2, Completions: &three, Parallelism: &two}) ||
		job.Containers[0].Env[0] != (EnvVar{Name: "JOB_COMPLETION_INDEX", Value: "2"}) {
		t.Errorf("pod of a Job: %+v", job)
	}
	if job.RestartPolicy != RestartOnFailure || *job.BackoffLimit != 6 || job.Containers[0].RestartPolicy != "" {
		t.Errorf("a Job with the default backoffLimit: %+v", job)
	}
	again := []RestartRule{{Action: "RestartAllContainers", ExitCodes: &ExitCodes{Operator: "NotIn", Values: []int32{0}}}}
	if p := podOf(t, "job.yaml", "pi", Options{}); p.RestartPolicy != RestartNever || *p.BackoffLimit != 4 ||
		!reflect.DeepEqual(p.Containers[0].RestartPolicyRules, again) {
		t.Errorf("a Job with retries: %+v", p)
	}
	if p := podOf(t, "job-no-retry.yaml", "pi", Options{}); p.RestartPolicy != RestartNever || *p.ActiveDeadlineSeconds != 100 ||
		*p.TTLSecondsAfterFinished != 100 || *p.BackoffLimit != 0 || p.Containers[0].RestartPolicyRules != nil {
		t.Errorf("a Job without retries: %+v", p)
	}
	for _, name := range []string{"job-no-limit.yaml", "job-no-limit-policy.yaml"} {
		p := podOf(t, name, "pi", Options{})
		if !p.Retries() || *p.BackoffLimit != math.MaxInt32 || len(p.Containers[0].RestartPolicyRules) != 1 {
			t.Errorf("%s, a Job that is retried without a limit: %+v", name, p)
		}
	}
	if p := podOf(t, "job-no-limit-on-failure.yaml", "pi", Options{}); p.BackoffLimit != nil {
		t.Errorf("a Job that restarts containers without a limit: %+v", p)
	}
	for name, want := range map[string]Seconds{"job-two-deadlines.yaml": 60, "job-deadline-of-attempt.yaml": 30} {
		if p := podOf(t, name, "pi", Options{}); *p.ActiveDeadlineSeconds != want {
			t.Errorf("%s: deadline %v, want %v", name, *p.ActiveDeadlineSeconds, want)
		}
	}
	if p := podOf(t, "job-per-index.yaml", "pi-1", Options{}); *p.BackoffLimit != 1 {
		t.Errorf("a Job with a limit for each index: %+v", p)
	}
	if p := podOf(t, "job.yaml", "pi", Options{}); p.Job != nil {
		t.Errorf("a Job with one pod: %+v", p.Job)
	}
	all := podOf(t, "job-all-policies.yaml", "pi-1", Options{})
	one, four := int32(1), int32(4)
	wantJob := &Job{
		Name: "pi", Index: 1, Completions: &three, Parallelism: &two, BackoffLimit: &four, BackoffLimitPerIndex: &one,
		MaxFailedIndexes: &two,
		SuccessPolicy:    &SuccessPolicy{Rules: []SuccessRule{{SucceededIndexes: "0,2", SucceededCount: &one}}},
		PodFailurePolicy: &PodFailurePolicy{Rules: []PodFailureRule{
			{Action: ActionFailIndex, OnExitCodes: &OnExitCodes{Operator: "In", Values: []int32{3}}},
			{Action: ActionFailJob, OnExitCodes: &OnExitCodes{ContainerName: "pi", Operator: "NotIn", Values: []int32{1, 2}}},
		}},
	}
	if diff := cmp.Diff(wantJob, all.Job); diff != "" || *all.BackoffLimit != 1 || len(all.Containers[0].RestartPolicyRules) != 1 {
		t.Errorf("a Job with all policies: %+v (-want +got):\n%s", all, diff)
	}
	rules := podOf(t, "job-failure-policy.yaml", "pi", Options{}).Containers[0].RestartPolicyRules
	if len(rules) != 1 || rules[0].Action != "RestartAllContainers" || rules[0].ExitCodes.Operator != "NotIn" ||
		!slices.Equal(rules[0].ExitCodes.Values, []int32{42, 0}) {
		t.Errorf("failure policy: %+v", rules)
	}
	if p := podOf(t, "cron-job-alone.yaml", "backup", Options{}); *p.Schedule != (Schedule{Cron: "0 3 * * *"}) || *p.BackoffLimit != 6 {
		t.Errorf("a CronJob: %+v", p)
	}
	nightly := podOf(t, "cron-job-fields.yaml", "backup", Options{})
	hour, seven := Seconds(3600), int32(7)
	want := Schedule{
		Cron: "0 3 * * *", TimeZone: "Europe/Berlin", StartingDeadlineSeconds: &hour, ConcurrencyPolicy: ConcurrencyForbid, Suspend: true,
		SuccessfulJobsHistoryLimit: &seven, FailedJobsHistoryLimit: &two,
	}
	if diff := cmp.Diff(&want, nightly.Schedule); diff != "" || *nightly.BackoffLimit != 2 || *nightly.ActiveDeadlineSeconds != 600 ||
		*nightly.TTLSecondsAfterFinished != 86400 || nightly.Labels["app"] != "backup" {
		t.Errorf("a CronJob with all fields: %+v (-want +got):\n%s", nightly, diff)
	}
	if p := podOf(t, "service-node-port.yaml", "web", Options{}); p.Hostname != "site" || p.Containers[0].Ports[0].HostPort != 30080 {
		t.Errorf("NodePort: %+v", p.Containers[0].Ports)
	}
	first, second := podOf(t, "service-load-balancer.yaml", "web-0", Options{}), podOf(t, "service-load-balancer.yaml", "web-1", Options{})
	if port := first.Containers[0].Ports[0]; port.HostPort != 8080 || port.ContainerPort != 80 || len(second.Containers[0].Ports) > 0 {
		t.Errorf("LoadBalancer: %+v, %+v", first.Containers[0].Ports, second.Containers[0].Ports)
	}
	if p := podOf(t, "podman.yaml", "app-1-pod", Options{}); p.Containers[0].Name != "app-1" || len(p.Annotations) > 0 ||
		p.Containers[0].SecurityContext.Capabilities.Drop[0] != "MKNOD" || p.Volumes[0].PersistentVolumeClaim.ClaimName != "app-data" {
		t.Errorf("Podman: %+v", p)
	}
}

// TestStreamText checks line breaks and byte order marks of streams.
func TestStreamText(t *testing.T) {
	t.Parallel()
	text := "# a\n" + manifestOfWeb + "---\n" + strings.ReplaceAll(manifestOfWeb, "web", "db")
	for name, changed := range map[string]string{
		"CRLF":                    strings.ReplaceAll(text, "\n", "\r\n"),
		"mark":                    "\ufeff" + text,
		"marks":                   "\ufeff" + strings.ReplaceAll(text, "---\n", "---\n\ufeff"),
		"mark before a separator": strings.ReplaceAll(text, "---\n", "\ufeff---\n"),
	} {
		parts, problems := Options{}.ParseParts("web.yaml", []byte(changed))
		if got := partNames(parts); got != "web db" || len(problems) > 0 {
			t.Errorf("%s: pods %q: %v", name, got, problems)
		}
	}
	if _, problems := (Options{}).ParseParts("web.yaml", []byte(strings.Repeat("---\n", maxDocuments+2))); len(problems) != 1 {
		t.Errorf("many documents: %v", problems)
	}
}

// FuzzParts checks that no stream panics or hangs, that problems have positions in the file and no control characters, and that each pod is
// the same in a file of its own.
func FuzzParts(f *testing.F) {
	for _, m := range manifests(f) {
		f.Add(m.Data, true)
	}
	f.Add([]byte("&a [*a]"), false)
	f.Fuzz(func(t *testing.T, data []byte, allowLoss bool) {
		parts, problems := Options{AllowLoss: allowLoss}.ParseParts("web.yaml", data)
		lines := strings.Count(breaks.Replace(string(data)), "\n") + 2
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Line > lines {
				t.Errorf("line %d of %d: %v", p.Line, lines, p)
			}
			if strings.ContainsFunc(p.String()+p.Hint, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("a control character in %q", p)
			}
		}
		for i := range parts {
			p := &parts[i]
			if (p.Pod == nil) != (len(p.Problems.Errors()) > 0) {
				t.Fatalf("pod %v with problems:\n%v", p.Pod, p.Problems)
			}
			checkText(t, "web.yaml", p)
		}
	})
}

// TestStreamLimits: the values of all pods are bounded, also those of config maps that each of them gets, and the error is reported once.
func TestStreamLimits(t *testing.T) {
	t.Parallel()
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
	deployment := func(n int) string {
		return fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d%d}\n"+
			"spec: {replicas: 16, selector: {matchLabels: {a: b}}, "+
			"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, envFrom: [{configMapRef: {name: c}}]}]}}}\n", n)
	}
	var many strings.Builder
	for i := range 20 {
		many.WriteString(deployment(i))
	}
	for name, test := range map[string]struct{ text, want string }{
		"pods":   {many.String(), "file defines more than 128 pods"},
		"values": {configMap + keys(9000) + deployment(0), "have more than 80000 values"},
		"none":   {strings.Replace(deployment(0), "replicas: 16", "replicas: 0", 1), "file defines no pod"},
	} {
		_, problems := Options{}.ParseParts("d.yaml", []byte(test.text))
		if errs := problems.Errors(); len(errs) != 1 || !strings.Contains(errs[0].Message, test.want) {
			t.Errorf("%s: %v, want one error %q", name, errs, test.want)
		}
	}
	none := strings.Replace(deployment(0), "replicas: 16", "replicas: 0", 1)
	if _, problems := (Options{}).ParseParts("d.yaml", []byte(none)); len(problems) != 1 ||
		!strings.Contains(problems[0].Hint, "podstead delete") {
		t.Errorf("no replicas: %v, want a hint to delete pods", problems)
	}
}

// keys returns entries of a mapping.
func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%d: v\n", i)
	}
	return b.String()
}
