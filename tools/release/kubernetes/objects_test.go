package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	strict "sigs.k8s.io/yaml"
)

const (
	base   = "../../../packaging/kubernetes"
	golden = "../../../internal/fleet/testdata"
)

// objects are those of a stream, decoded into Kubernetes's types: an unknown or double field is an error.
type objects struct {
	kinds    []string
	secrets  []corev1.Secret
	claims   []corev1.PersistentVolumeClaim
	services []corev1.Service
	jobs     []batchv1.Job
	agents   []appsv1.StatefulSet
	policies []networkingv1.NetworkPolicy
}

func decode(t *testing.T, data []byte) (o objects) {
	t.Helper()
	for r := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data))); ; {
		document := make([]byte, 64<<10)
		n, err := r.Read(document)
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			t.Fatal(err)
		}
		document = document[:n]
		var head struct{ APIVersion, Kind string }
		if err := strict.Unmarshal(document, &head); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		o.kinds = append(o.kinds, head.Kind)
		switch head.APIVersion + " " + head.Kind {
		case "v1 Secret":
			o.secrets = append(o.secrets, as[corev1.Secret](t, document))
		case "v1 PersistentVolumeClaim":
			o.claims = append(o.claims, as[corev1.PersistentVolumeClaim](t, document))
		case "v1 Service":
			o.services = append(o.services, as[corev1.Service](t, document))
		case "batch/v1 Job":
			o.jobs = append(o.jobs, as[batchv1.Job](t, document))
		case "apps/v1 StatefulSet":
			o.agents = append(o.agents, as[appsv1.StatefulSet](t, document))
		case "networking.k8s.io/v1 NetworkPolicy":
			o.policies = append(o.policies, as[networkingv1.NetworkPolicy](t, document))
		default:
			t.Fatalf("unknown object %s %s", head.APIVersion, head.Kind)
		}
	}
}

func as[T any](t *testing.T, document []byte) (object T) {
	t.Helper()
	if err := strict.UnmarshalStrict(document, &object); err != nil {
		t.Errorf("%v\n%s", err, document)
	}
	return object
}

// streams are what is checked: the base that is shipped, and the output for other options.
func streams(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var kustomization struct{ Resources []string }
	data, err := os.ReadFile(filepath.Join(base, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := strict.Unmarshal(data, &kustomization); err != nil {
		t.Fatal(err)
	}
	var joined [][]byte
	for _, name := range kustomization.Resources {
		data, err := os.ReadFile(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		joined = append(joined, data)
	}
	files, err := filepath.Glob(base + "/*.yaml")
	if err != nil || len(files) != len(joined)+1 {
		t.Errorf("the folder has %d files, kustomization.yaml names %d: %v", len(files), len(joined), err)
	}
	all["base"] = bytes.Join(joined, []byte("---\n"))
	more, err := filepath.Glob(golden + "/*.yaml")
	if err != nil || len(more) == 0 {
		t.Fatalf("got %d files of internal/fleet and %v", len(more), err)
	}
	for _, path := range more {
		if all[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestObjects(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, stream := range streams(t) {
		t.Run(name, func(t *testing.T) {
			o := decode(t, stream)
			want := []string{"Secret", "PersistentVolumeClaim", "Service", "Job", "StatefulSet", "NetworkPolicy", "NetworkPolicy"}
			if !slices.Equal(o.kinds, want) {
				t.Fatalf("got %v, want %v", o.kinds, want)
			}
			coordinator, agents := o.jobs[0].Spec.Template, o.agents[0].Spec.Template
			for _, pod := range []corev1.PodTemplateSpec{coordinator, agents} {
				checkPod(t, evaluator, pod, o)
			}
			if r := coordinator.Spec.RestartPolicy; r != corev1.RestartPolicyOnFailure && r != corev1.RestartPolicyNever {
				t.Errorf("a job's pods cannot have the restart policy %s", r)
			}
			if !within(o.agents[0].Spec.Selector.MatchLabels, agents.Labels) {
				t.Error("the set does not select its pods")
			}
			service := o.services[0].Spec
			if !within(service.Selector, coordinator.Labels) || within(service.Selector, agents.Labels) {
				t.Error("the service does not select the coordinator only")
			}
			port := coordinator.Spec.Containers[0].Ports[0]
			if service.Ports[0].TargetPort.StrVal != port.Name || service.Ports[0].Port != port.ContainerPort {
				t.Errorf("the service's port %v is not the coordinator's %v", service.Ports[0], port)
			}
			if !within(o.policies[0].Spec.PodSelector.MatchLabels, coordinator.Labels) || !within(o.policies[1].Spec.PodSelector.MatchLabels, agents.Labels) {
				t.Error("the policies do not select their pods")
			}
			for _, p := range o.policies {
				if len(p.Spec.PolicyTypes) != 2 {
					t.Errorf("%s restricts %v only", p.Name, p.Spec.PolicyTypes)
				}
			}
			if in := o.policies[1].Spec.Ingress; len(in) > 0 {
				t.Errorf("agents can be reached: %v", in)
			}
			if in := o.policies[0].Spec.Ingress[0].From[0].PodSelector.MatchLabels; !within(in, agents.Labels) || within(in, coordinator.Labels) {
				t.Errorf("%v reach the coordinator, want the agents", in)
			}
			replicas := int(*o.agents[0].Spec.Replicas)
			for _, v := range agents.Spec.Volumes {
				if v.Secret == nil {
					continue
				}
				if len(v.Secret.Items) != replicas {
					t.Errorf("%d agents have %d join files", replicas, len(v.Secret.Items))
				}
				for i, item := range v.Secret.Items {
					if want := fmt.Sprintf("%s-%d/fleet.join", o.agents[0].Name, i); item.Path != want {
						t.Errorf("the join file of agent %d is %s, want %s", i, item.Path, want)
					}
				}
			}
			term := agents.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
			if !within(term.LabelSelector.MatchLabels, agents.Labels) || term.TopologyKey != corev1.LabelHostname {
				t.Error("agents do not avoid each other's nodes")
			}
		})
	}
}

// within reports whether a selector selects something with the labels.
func within(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// checkPod checks a pod by the rules of the level "restricted", and that what it refers to is there.
func checkPod(t *testing.T, evaluator policy.Evaluator, pod corev1.PodTemplateSpec, o objects) {
	t.Helper()
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		t.Errorf("the pod is not restricted: %s", result.ForbiddenDetail())
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pod has a token of the cluster")
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.Secret != nil && v.Secret.SecretName != o.secrets[0].Name {
			t.Errorf("the secret %s does not exist", v.Secret.SecretName)
		}
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != o.claims[0].Name {
			t.Errorf("the claim %s does not exist", v.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, c := range o.agents[0].Spec.VolumeClaimTemplates {
		volumes[c.Name] = true
	}
	mounts := []string{}
	for _, c := range pod.Spec.Containers {
		if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Error("the root file system can be written")
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || !c.Resources.Limits.Cpu().IsZero() {
			t.Errorf("resources: %v", c.Resources)
		}
		for _, m := range c.VolumeMounts {
			mounts = append(mounts, m.MountPath)
			if !volumes[m.Name] {
				t.Errorf("the volume %s does not exist", m.Name)
			}
		}
	}
	if !slices.Contains(mounts, "/tmp") || !slices.Contains(mounts, "/data") {
		t.Errorf("got the folders %v, want /tmp and /data too", mounts)
	}
}

// TestFindings checks that the checks can fail.
func TestFindings(t *testing.T) {
	var job batchv1.Job
	if err := strict.UnmarshalStrict([]byte("kind: Job\nspec: {replicas: 1}"), &job); err == nil {
		t.Error("an unknown field was accepted")
	}
	if err := strict.UnmarshalStrict([]byte("kind: Job\nkind: Pod"), &job); err == nil {
		t.Error("a double field was accepted")
	}
}

// TestKustomize builds the base with kubectl, where it is installed.
func TestKustomize(t *testing.T) {
	tool, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	out, err := exec.CommandContext(t.Context(), tool, "kustomize", base).Output()
	if err != nil {
		t.Fatal(err)
	}
	if o := decode(t, out); len(o.kinds) != 7 {
		t.Errorf("got %v", o.kinds)
	}
}
