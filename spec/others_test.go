package spec

import (
	"strings"
	"testing"
)

// TestOthers checks that pods use the config maps, secrets and services of files that are read together with theirs.
func TestOthers(t *testing.T) {
	t.Parallel()
	const web = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\n" +
		"spec: {containers: [{name: web, image: busybox, envFrom: [{configMapRef: {name: c}}], ports: [{containerPort: 80}]}]}\n"
	const c = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: other}\n"
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: site}\n" +
		"spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, nodePort: 30080}]}\n"
	others := []OtherFile{
		{"c.yaml", []byte(c)}, {"service.yaml", []byte(service)}, {"bad.yaml", []byte("kind: [")}, {"x.toml", []byte("x")},
	}
	parts, problems := Options{Others: others}.ParseParts("web.yaml", []byte(web))
	if len(parts) != 1 || len(problems) > 0 {
		t.Fatalf("%d pods: %v", len(parts), problems)
	}
	p := parts[0].Pod
	if len(p.ConfigMaps) != 1 || p.ConfigMaps[0].Data["a"] != "other" || p.Hostname != "site" ||
		p.Containers[0].Ports[0].HostPort != 30080 {
		t.Errorf("pod %+v", p)
	}
	text, err := parts[0].Text()
	if alone, problems := Parse("web.yaml", text); err != nil || alone == nil || alone.Hash != p.Hash {
		t.Errorf("the text alone: %v, %v\n%s", err, problems, text)
	}
	own := web + "---\n" + strings.Replace(c, "other", "own", 1)
	parts, problems = Options{Others: others}.ParseParts("web.yaml", []byte(own))
	if len(parts) != 1 || len(problems) > 0 || parts[0].Pod.ConfigMaps[0].Data["a"] != "own" {
		t.Errorf("the config map of the file itself: %v", problems)
	}
	for _, text := range []string{c, service} {
		o := Options{Others: []OtherFile{{"web.yaml", []byte(web)}}}
		if parts, problems := o.ParseParts("c.yaml", []byte(text)); len(parts) != 0 || len(problems) > 0 {
			t.Errorf("a file without pods: %d pods, %v", len(parts), problems)
		}
	}
}
