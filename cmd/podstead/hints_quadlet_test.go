package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/quadlet"
)

// quadletHint are units that are converted with a hint, and those that follow it: the last lines of web.container, or archives.
type quadletHint struct{ hint, before, after string }

const (
	ofService = "[Service]\n"
	webUnit   = "-- web.container --\n[Container]\nImage=web:1\n"
	dbUnit    = "-- db.container --\n[Container]\nImage=db:1\n"
	podUnit   = "-- shop.pod --\n[Pod]\n"
	webKube   = "-- web.yaml --\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: web, image: web}]\n" +
		"-- web.kube --\n[Kube]\nYaml=web.yaml\n"
)

// quadletHints are the hints to units of Quadlet, by a part of each. What they say about pod files and settings is in fieldsOfHints and
// settingsOfHints; the key is left out then.
var quadletHints = []quadletHint{
	{hint: "run podman save IMAGE", before: webUnit + "-- a.container --\n[Container]\nImage=localhost/a:1\n", after: webUnit},
	{
		hint:   "write the name of the image, and the archive into",
		before: "-- a.container --\n[Container]\nImage=oci-archive:a.tar\n", after: webUnit,
	},
	{hint: "or the directory of the units", before: "Pod=shop.pod", after: webUnit + "Pod=shop.pod\n" + podUnit},
	{hint: "write its value", before: "Environment=A", after: "Environment=A=b"},
	{hint: "write its UID", before: "User=app", after: "User=1000"},
	{hint: "write its GID", before: "Group=app", after: "Group=1000"},
	{hint: "write the GIDs", before: "GroupAdd=keep-groups", after: "GroupAdd=44"},
	{
		hint:   "or write a pod of its own",
		before: webUnit + "Pod=shop.pod\nGroupAdd=44\n" + dbUnit + "Pod=shop.pod\n" + podUnit, after: webUnit + "GroupAdd=44\n" + dbUnit,
	},
	{
		hint:   "set the annotation podstead.io/log-driver",
		before: webUnit + "Pod=shop.pod\nLogDriver=journald\n" + dbUnit + "Pod=shop.pod\n" + podUnit,
	},
	{hint: "write a long time", before: "StopTimeout=infinity", after: "StopTimeout=86400"},
	{
		hint:   "pass the .container, .pod or .kube units",
		before: "-- data.volume --\n[Volume]\n", after: webUnit + "-- data.volume --\n[Volume]\n",
	},
	{hint: "pass the .container units with Pod=", before: podUnit, after: podUnit + webUnit + "Pod=shop.pod\n"},
	{
		hint:   "set ContainerName= or PodName=",
		before: webUnit + dbUnit + "ContainerName=web\n", after: webUnit + dbUnit + "ContainerName=db\n",
	},
	{hint: "write HealthOnFailure=kill", before: "HealthCmd=true\nHealthOnFailure=stop", after: "HealthCmd=true\nHealthOnFailure=kill"},
	{hint: "write HealthCmd= and Notify=healthy", before: "Notify=true", after: "HealthCmd=true\nNotify=healthy"},
	{hint: "write HealthCmd=", before: "Notify=healthy", after: "HealthCmd=true\nNotify=healthy"},
	{hint: "write an absolute path, or a CDI", before: "AddDevice=vendor.com/class", after: "AddDevice=vendor.com/class=name"},
	{hint: "write another path", before: "AddDevice=/dev/kvm:/kvm", after: "AddDevice=/dev/kvm"},
	{hint: "write Pull=always and run podstead restart POD", before: "AutoUpdate=registry", after: "Pull=always"},
	{hint: "write them with Environment=", before: "EnvironmentHost=true", after: "Environment=A=b"},
	{hint: "set containerLog in podstead.toml", before: "LogOpt=max-size=1m"},
	{hint: "run podstead exec POD -- COMMAND", before: "ReloadCmd=reload"},
	{hint: "run podstead exec POD -- kill", before: "ReloadSignal=SIGHUP"},
	{
		hint:   "make an image of the directory, and write Image=",
		before: "-- web.container --\n[Container]\nRootfs=/srv/web\n", after: webUnit,
	},
	{hint: "write a pod of its own", before: webUnit + "Pod=shop.pod\nStartWithPod=false\n" + podUnit, after: webUnit},
	{hint: "write each limit", before: "Ulimit=host", after: "Ulimit=nofile=1024:65536"},
	{hint: "write a size", before: "ShmSize=0", after: "ShmSize=1g"},
	{
		hint:   "set pidsLimit in the pod file",
		before: webUnit + "Pod=shop.pod\nPidsLimit=5\n" + dbUnit + "Pod=shop.pod\n" + podUnit,
	},
	{hint: "set procMount and hostUsers = false in the pod file, and run", before: "Unmask=ALL"},
	{hint: "or run the pod as root with hostUsers = false in the pod file", before: "UIDMap=0:1:1"},
	{hint: "write UserNS=keep-id:uid=NUMBER,gid=NUMBER, or", before: "UserNS=keep-id", after: "UserNS=keep-id:uid=1000,gid=1000"},
	{hint: "add gid, such as UserNS=", before: "UserNS=keep-id:uid=1000", after: "UserNS=keep-id:uid=1000,gid=1000"},
	{
		hint:   "set UserNS= in the unit of the pod",
		before: webUnit + "Pod=shop.pod\nUserNS=keep-id:uid=5,gid=5\n" + dbUnit + "Pod=shop.pod\n" + podUnit,
		after:  webUnit + "Pod=shop.pod\n" + dbUnit + "Pod=shop.pod\n" + podUnit + "UserNS=keep-id:uid=5,gid=5\n",
	},
	{hint: "set fsGroup in the pod file", before: webUnit + "Volume=data.volume:/data\n-- data.volume --\n[Volume]\nUID=1000\n"},
	{hint: "set network.subnets in podstead.toml", before: webUnit + "Network=a.network\n-- a.network --\n[Network]\nIPv6=true\n"},
	{
		hint:   "limit access with the IP address of PublishPort=",
		before: webUnit + "Network=a.network\n-- a.network --\n[Network]\nInternal=true\n",
		after:  webUnit + "PublishPort=127.0.0.1:80:80\n",
	},
	{
		hint:   "write DNS= in the .container or .pod units",
		before: webUnit + "Network=a.network\n-- a.network --\n[Network]\nDNS=192.0.2.1\n", after: webUnit + "DNS=192.0.2.1\n",
	},
	{hint: "apply a file with a new image", before: webKube + "AutoUpdate=registry\n", after: webKube},
	{hint: "delete them with podstead volume rm VOLUME", before: webKube + "KubeDownForce=true\n", after: webKube},
	{hint: "set hostNetwork in the Kubernetes file", before: webKube + "Network=host\n", after: inKube("hostNetwork: true")},
	{hint: "or as root with hostUsers: false in the Kubernetes file", before: webKube + "UserNS=auto\n", after: inKube("hostUsers: false")},
	{
		hint:   "set hostPort in the Kubernetes file",
		before: inKube("hostNetwork: true") + "PublishPort=8080:80\n",
		after:  strings.Replace(webKube, "image: web", "image: web, ports: [{containerPort: 80, hostPort: 8080}]", 1),
	},
	{
		hint:   "write the conditions there",
		before: inKube("waitFor: [\"path:/a\"]") + "[Unit]\nAfter=a.mount\n", after: inKube("waitFor: [\"path:/a\"]"),
	},
	{hint: "see docs/howto/registries.md", before: webUnit + "-- a.image --\n[Image]\nImage=a:1\nTLSVerify=false\n", after: webUnit},
	{hint: "run podstead login REGISTRY", before: webUnit + "-- a.image --\n[Image]\nImage=a:1\nAuthFile=/a\n", after: webUnit},
	{
		hint:   "make an image of the files, and mount it",
		before: webUnit + "-- a.artifact --\n[Artifact]\nArtifact=a:1\n", after: webUnit + "Mount=type=image,source=a:1,destination=/a\n",
	},
	{hint: "write its name as Image=NAME", before: webUnit + "-- a.build --\n[Build]\nImageTag=a:1\n", after: webUnit},
	{hint: "write a command as [[notify]] in podstead.toml", before: "[Unit]\nOnFailure=a.service"},
	{hint: "write EnvironmentFile= into [Container]", before: ofService + "EnvironmentFile=/a.env", after: "EnvironmentFile=/a.env"},
	{
		hint:   "mount it with Volume=",
		before: "EnvironmentFile=%d/a\n" + ofService + "LoadCredentialEncrypted=a:/a",
		after:  "Volume=%d/a:/a\n" + ofService + "LoadCredentialEncrypted=a:/a",
	},
	{hint: "write the value to a file of /etc/podstead/secrets", before: ofService + "SetCredential=a:b", after: "Secret=a"},
	{hint: "set restartPolicyRules in the pod file", before: ofService + "RestartPreventExitStatus=2"},
	{hint: "write an entry of initContainers, or a unit of systemd", before: ofService + "ExecStartPre=/bin/true"},
	{hint: "write the command into Exec= of [Container]", before: ofService + "ExecStart=/bin/web", after: "Exec=/bin/web"},
	{hint: "write an address of the host", before: "AddHost=a:host-gateway", after: "AddHost=a:192.0.2.1"},
	{hint: "set mode = \"none\" of [network] in podstead.toml", before: "Network=none"},
	{hint: "write the containers into one pod: Pod=NAME.pod", before: "Network=container:db", after: webUnit + "Pod=shop.pod\n" + podUnit},
	{
		hint:   "write Restart=always",
		before: webUnit + "Pod=shop.pod\n[Unit]\nAfter=db.service\n" + dbUnit + "Pod=shop.pod\n[Service]\nRestart=no\n" + podUnit,
		after:  webUnit + "Pod=shop.pod\n[Unit]\nAfter=db.service\n" + dbUnit + "Pod=shop.pod\n[Service]\nRestart=always\n" + podUnit,
	},
	{
		hint:   "remove one of After= or Requires=",
		before: webUnit + "[Unit]\nAfter=db.service\n" + dbUnit + "[Unit]\nAfter=web.service\n",
		after:  webUnit + "[Unit]\nAfter=db.service\n" + dbUnit,
	},
	{
		hint:   "too, or remove waitFor from the pod file",
		before: "[Unit]\nRequires=db.service\nAfter=db.service",
		after:  webUnit + "[Unit]\nRequires=db.service\nAfter=db.service\n" + dbUnit,
	},
	{hint: "order it before podstead.service", before: "[Unit]\nAfter=a@b.service"},
	{hint: "write the command into Exec=", before: "PodmanArgs=web", after: "Exec=web"},
	{
		hint:   "write it into the .container units",
		before: webUnit + "Pod=shop.pod\n" + podUnit + "PodmanArgs=--env A=b\n",
		after:  webUnit + "Pod=shop.pod\nPodmanArgs=--env A=b\n" + podUnit,
	},
	{hint: "pass it too", before: "Volume=data.volume:/data", after: webUnit + "Volume=data.volume:/data\n-- data.volume --\n[Volume]\n"},
	{hint: "set runAsUser or fsGroup in the pod file", before: "Secret=a,uid=1000", after: "Secret=a"},
	{hint: "write it to the file secrets/", before: "Secret=a"},
	{hint: "write it: PublishPort=PORT:", before: "PublishPort=80", after: "PublishPort=8080:80"},
	{hint: "set seccompProfile in the pod file", before: "SeccompProfile=/web.json"},
	{hint: "accept it with --allow-loss", before: "Mask=/a"},
	{hint: "write $${", before: "Exec=sh -c 'echo ${A}'", after: "Exec=sh -c 'echo $${A}'"},
	{hint: "write $$", before: "Exec=sh -c $A", after: "Exec=sh -c $$A"},
	{hint: "in commands", before: "ContainerName=My_web"},
	{hint: "did you mean ", before: "publishport=80:80", after: "PublishPort=80:80"},
	{hint: "convert them in several calls", before: manyUnits(), after: webUnit},
	{
		hint:   "pass an instance of it, such as",
		before: "-- web@.container --\n[Container]\nImage=web:1\n", after: "-- web@NAME.container --\n[Container]\nImage=web:1\n",
	},
	{hint: "in the other units", before: "NetworkAlias=a.b", after: "NetworkAlias=a"},
	{hint: "copy the files in an entry of initContainers", before: "Volume=data:/data"},
	{
		hint:   "mount it on the host, and write the path",
		before: webUnit + "Volume=a.volume:/a\n-- a.volume --\n[Volume]\nType=nfs\nDevice=b:/b\n", after: "Volume=/mnt/a:/a",
	},
}

// inKube is a Kubernetes file with a field of the pod, and its unit.
func inKube(field string) string {
	return strings.Replace(webKube, "  containers", "  "+field+"\n  containers", 1)
}

// manyUnits are more units than one call converts.
func manyUnits() string {
	var b strings.Builder
	for i := range 257 {
		fmt.Fprintf(&b, "-- v%d.volume --\n[Volume]\n", i)
	}
	return b.String()
}

// TestHintsOfUnits converts units for each hint, and those that follow it, which have no errors and not this hint.
func TestHintsOfUnits(t *testing.T) {
	var parts []string
	for _, h := range quadletHints {
		parts = append(parts, h.hint)
		t.Run(h.hint, func(t *testing.T) {
			has := func(problems spec.Problems) bool {
				return slices.ContainsFunc(problems, func(p spec.Problem) bool { return strings.Contains(p.Hint, h.hint) })
			}
			if _, problems := convertedUnits(t, h.before); !has(problems) {
				t.Fatalf("no hint for\n%s\n%v", h.before, problems)
			}
			pods, problems := convertedUnits(t, h.after)
			if repeated := has(problems) && !strings.Contains(h.after, "Secret="); repeated || len(pods) == 0 {
				t.Errorf("not taken:\n%s\n%v", h.after, problems)
			}
		})
	}
	checkFollowed(t, parts, "quadletHints", func(h foundHint) bool { return aboutQuadlet(&h) })
}

func convertedUnits(t *testing.T, text string) ([]quadlet.Pod, spec.Problems) {
	t.Helper()
	if !strings.HasPrefix(text, "-- ") {
		text = webUnit + text + "\n"
	}
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return quadlet.Convert([]string{dir}, &quadlet.Host{}, spec.Options{}, false)
}
