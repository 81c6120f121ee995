"""
What a trial on a real cluster found, what mends it, and the tests that tell.

`text` stands once in `file`, and `without` in its place is the code without the
mending: as it was before, or as it would be if somebody took it away. Rows are
numbered as in docs/decisions/0526.
"""

from dataclasses import dataclass

SCHEDULER = "src/nodescope/use/scheduler"
CHART = "deploy/chart/templates"
STANDING = "tests/use/scheduler/test_standing.py"
COST = "tests/use/scheduler/test_scheduler_cost.py"
HOSTILE = "tests/use/scheduler/test_hostile_nodes.py"
RENDERED = "tests/chart/test_rendering.py"
INSTALLED = "tests/chart/test_installed.py"
PLACED = "tests/integration/test_kube_scheduler.py"


@dataclass(frozen=True, slots=True)
class Mending:
    """One place that a fault is mended in."""

    row: int
    what: str
    file: str
    text: str
    without: str
    tests: tuple[str, ...]
    """Each of them fails without it."""


MENDINGS = (
    Mending(
        0,
        "a saved load is worth more than what the other plugins differ by",
        f"{SCHEDULER}/rating.py",
        "DOUBLING_POINTS = 33",
        "DOUBLING_POINTS = 0.33",
        (
            f"{HOSTILE}::test_the_node_that_has_the_bitstream_is_best_whatever_times_are_reported",
            f"{PLACED}::test_a_pod_goes_to_the_node_that_has_its_bitstream_whatever_times_were_reported",
        ),
    ),
    Mending(
        0,
        "a load is never free",
        f"{SCHEDULER}/load_times.py",
        "LEAST_LOAD_MS = 10.0",
        "LEAST_LOAD_MS = 0.0",
        (f"{HOSTILE}::test_the_node_that_has_the_bitstream_is_best_whatever_times_are_reported",),
    ),
    Mending(
        1,
        "pods ask for no variables of Services",
        f"{CHART}/daemonset.yaml",
        "enableServiceLinks: false",
        "enableServiceLinks: true",
        (f"{RENDERED}::test_the_kubelet_s_variables_of_our_own_services_stop_nobody",),
    ),
    Mending(
        1,
        "variables that a kubelet made of a Service are no settings",
        "src/nodescope/base/settings_load.py",
        "return match is not None and",
        "return match is None and",
        (f"{RENDERED}::test_the_kubelet_s_variables_of_our_own_services_stop_nobody",),
    ),
    Mending(
        1,
        "a Service called exporter is no port to listen at",
        "src/nodescope/base/settings_load.py",
        'if port and not ("://" in port and is_service_link("EXPORTER_PORT", environment)):',
        "if port:",
        ("tests/base/test_settings_load.py::test_a_service_called_exporter_is_no_port_to_listen_at",),
    ),
    Mending(
        2,
        "a list of pods is taken page by page",
        "src/nodescope/kube/watch.py",
        "self.listener.replace(items)",
        "self.listener.replace(list(items))",
        (
            "tests/kube/test_watch.py::test_a_page_is_taken_before_the_next_is_asked_for",
            "tests/use/scheduler/test_pod_list.py::test_a_long_list_of_pods_is_reduced_page_by_page",
        ),
    ),
    Mending(
        3,
        "a scheduler of the chart's own",
        "deploy/chart/values.yaml",
        "  enabled: true\n  schedulerName: nodescope",
        "  enabled: false\n  schedulerName: nodescope",
        (f"{INSTALLED}::test_the_chart_s_scheduler_places_by_the_extender_s_scores",),
    ),
    Mending(
        3,
        "pods that were placed without a question are counted",
        f"{SCHEDULER}/placed_pods.py",
        "self.bound_total[pod.uid in self._expected or pod.uid in self._unseen] += 1",
        "pass",
        (f"{INSTALLED}::test_a_pod_that_was_placed_without_a_question_is_counted",),
    ),
    Mending(
        4,
        "the scheduler's verbs have a listener that asks for a certificate, not for a token",
        f"{CHART}/extender.yaml",
        "            - --verbs-listen=0.0.0.0:{{ .Values.extender.port }}\n"
        "            - --verbs-tls=/etc/nodescope/verbs\n",
        "            - --listen=0.0.0.0:{{ .Values.extender.port }}\n",
        (
            f"{RENDERED}::test_certificates_come_from_where_the_values_say",
            f"{INSTALLED}::test_the_chart_s_scheduler_places_by_the_extender_s_scores",
            f"{INSTALLED}::test_only_the_scheduler_s_certificate_is_let_in",
        ),
    ),
    Mending(
        4,
        "where all its calls would be refused, helm refuses",
        f"{CHART}/checks.yaml",
        'if and (eq $tls.from "off") (or',
        'if and (eq $tls.from "no such") (or',
        ("tests/chart/test_checks.py::test_a_scheduler_that_would_be_refused_is_refused_by_helm",),
    ),
    Mending(
        5,
        "a quota for the agents' priority class",
        f"{CHART}/quota.yaml",
        '(hasPrefix "system-"',
        '(hasPrefix "no-such-"',
        (
            f"{RENDERED}::test_a_class_of_the_system_gets_its_quota",
            f"{INSTALLED}::test_agents_are_admitted_where_their_class_needs_a_quota",
        ),
    ),
    Mending(
        6,
        "scores fall by doublings, whatever a session's length",
        f"{SCHEDULER}/rating.py",
        "(score := top - points * log1p((cost - best_ms) * per_unit))",
        "(score := 0.5 + BEST / (1 + (cost - best_ms) * per_unit * 0 + (cost - best_ms) / 200_000))",
        (f"{HOSTILE}::test_long_sessions_keep_milliseconds_and_seconds_apart",),
    ),
    Mending(
        7,
        "a window has a length",
        "src/nodescope/fpga/state.py",
        "if not is_number(window, *WINDOW_BOUNDS_SECONDS):",
        "if not is_number(window):",
        (f"{HOSTILE}::test_a_window_of_no_length_is_refused_and_nobody_is_troubled",),
    ),
    Mending(
        7,
        "a node keeps a number of load times, of its own",
        f"{SCHEDULER}/load_times.py",
        "if len(known) > BITSTREAMS:",
        "if False:",
        (f"{HOSTILE}::test_a_node_that_names_thousands_of_bitstreams_evicts_its_own",),
    ),
    Mending(
        7,
        "a session's length is a median over nodes",
        f"{SCHEDULER}/fpga_cluster.py",
        "clamp(median(lengths), SESSION_BOUNDS_MS)",
        "clamp(sum(lengths) / len(lengths), SESSION_BOUNDS_MS)",
        (f"{HOSTILE}::test_one_session_in_wrong_units_does_not_lengthen_everybody_s",),
    ),
    Mending(
        7,
        "nothing is learned from nodes that are not believed",
        f"{SCHEDULER}/nodes.py",
        "if judge_age((now_ms - node.fpga.at_ms) / 1000)[0]:",
        "if True:",
        (f"{HOSTILE}::test_load_times_are_medians_and_learned_from_believed_nodes_only",),
    ),
    Mending(
        7,
        "what one node says of its memory says nothing of the others'",
        f"{SCHEDULER}/profile/placement.py",
        "if len(peaks) < min(WITNESSES, believed):",
        "if False:",
        (f"{HOSTILE}::test_what_one_node_says_of_its_memory_moves_nobody_else",),
    ),
    Mending(
        7,
        "a peak of memory bandwidth is one that a machine can have",
        f"{SCHEDULER}/profile/placement.py",
        "return peak if PEAK_BOUNDS[0] <= peak <= PEAK_BOUNDS[1] else None",
        "return peak or None",
        (f"{HOSTILE}::test_what_one_node_says_of_its_memory_moves_nobody_else",),
    ),
    Mending(
        8,
        "only pods that the watch shows count",
        f"{SCHEDULER}/placed_pods.py",
        "if not self._is_watched or pod.uid in self._seen.waiting:",
        "if True:",
        (f"{HOSTILE}::test_calls_about_pods_that_do_not_exist_move_nobody",),
    ),
    Mending(
        8,
        "nodes that a caller sends teach nothing",
        f"{SCHEDULER}/extender.py",
        "self.nodes.parse(given[name]) if self.is_watched else self.nodes.learn(given[name])",
        "self.nodes.learn(given[name])",
        (f"{HOSTILE}::test_nodes_that_a_caller_sends_teach_nothing",),
    ),
    Mending(
        9,
        "what a node does not measure is the median of the others",
        f"{SCHEDULER}/host_cost.py",
        "return {name: median(shares) for name, shares in known.items()}",
        "return {}",
        ("tests/use/scheduler/test_balance.py::test_a_node_without_pcm_is_in_the_middle_of_those_with_it",),
    ),
    Mending(
        9,
        "throttling is no pressure",
        f"{SCHEDULER}/host_cost.py",
        'BETTER = {"cpu_pressure": "cpu_contention"}',
        "BETTER: dict[str, str] = {}",
        ("tests/use/scheduler/test_balance.py::test_a_throttled_pod_does_not_make_its_node_look_crowded",),
    ),
    Mending(
        9,
        "a pod counts by its request",
        f"{SCHEDULER}/pod_request.py",
        '"balance", cores=add_cores(pod), workload=workload)',
        '"balance", workload=workload)',
        (
            "tests/use/scheduler/test_balance.py::test_a_large_pod_goes_where_it_is_a_small_part",
            "tests/use/scheduler/test_balance.py::test_pods_on_their_way_count_by_what_they_request",
        ),
    ),
    Mending(
        10,
        "whole devices are packed",
        "src/nodescope/use/scheduler/extender.py",
        'if wanted and (pod.placement or self.placement) == "pack":',
        "if False:",
        (
            "tests/use/scheduler/test_packing.py::test_pods_of_one_wave_fill_one_node_and_leave_room_for_eight",
            "tests/integration/test_kube_devices.py::test_small_pods_leave_a_whole_node_to_a_large_one",
        ),
    ),
    Mending(
        10,
        "a pod with claims is no plain pod",
        f"{SCHEDULER}/pod_request.py",
        "if has_gpu or claims:",
        "if has_gpu:",
        (
            "tests/use/scheduler/test_packing.py::test_a_pod_with_a_claim_is_no_plain_pod_and_is_packed",
            "tests/integration/test_kube_devices.py::test_claims_are_packed_as_requests_are",
        ),
    ),
    Mending(
        11,
        "replicas ask each other",
        f"{SCHEDULER}/peers.py",
        "return list(found)[:PEERS]",
        "return []",
        ("tests/integration/test_extender_replicas.py::test_any_replica_explains_what_one_decided",),
    ),
    Mending(
        11,
        "nobody waits for those who wait for other replicas",
        f"{SCHEDULER}/server.py",
        "turns = self._peer_turns if asks_peers else self._turns",
        "turns = self._turns",
        (
            "tests/use/scheduler/test_scheduler_server.py::test_who_waits_for_other_replicas_keeps_neither_kube_scheduler_nor_them_waiting",
        ),
    ),
    Mending(
        11,
        "a thousand decisions are kept",
        f"{SCHEDULER}/explain.py",
        "DECISIONS = 1000",
        "DECISIONS = 39",
        (f"{COST}::test_a_thousand_decisions_are_kept_and_the_older_ones_with_their_best_nodes",),
    ),
    Mending(
        12,
        "the port of events answers nothing else",
        "src/nodescope/publish/agent_http.py",
        "EventsListener(guarded(EventsOnly(intake)), settings.fpga_listen)",
        "EventsListener(guarded(app), settings.fpga_listen)",
        ("tests/integration/test_fpga_listener.py::test_events_are_taken_and_nothing_is_answered",),
    ),
    Mending(
        12,
        "the chart opens that port alone to all namespaces",
        f"{CHART}/daemonset.yaml",
        "- --fpga-listen=0.0.0.0:",
        "- --listen=0.0.0.0:",
        (f"{RENDERED}::test_events_are_taken_where_nothing_is_read",),
    ),
    Mending(
        13,
        "a frozen extender is found by its probe within ten seconds",
        f"{CHART}/extender.yaml",
        "            terminationGracePeriodSeconds: 1\n",
        "",
        (f"{RENDERED}::test_a_frozen_extender_is_restarted_within_ten_seconds",),
    ),
    Mending(
        13,
        "an event loop that hangs says so",
        "src/nodescope/commands/extender.py",
        "HUNG_SECONDS = 3.0",
        "HUNG_SECONDS = 30.0",
        (f"{RENDERED}::test_a_frozen_extender_is_restarted_within_ten_seconds",),
    ),
    Mending(
        13,
        "of a large cluster only those nodes are judged for a pod that it changes",
        f"{SCHEDULER}/extender.py",
        "is_usual and len(call.names) > LEAST_NODES",
        "is_usual and False",
        (f"{STANDING}::test_a_pod_is_answered_and_explained_in_a_large_cluster",),
    ),
    Mending(
        13,
        "what changed since the pod before is judged again, and nothing else",
        f"{SCHEDULER}/standing.py",
        "elif touches != found.touches:",
        "elif False:",
        (f"{STANDING}::test_costs_that_were_kept_up_to_date_are_those_that_are_judged_anew",),
    ),
    Mending(
        13,
        "what no pod changes is judged every few seconds",
        f"{SCHEDULER}/standing.py",
        "if found is None or not 0 <= now_ms - found.at_ms < OLDEST_SECONDS * 1000:",
        "if True:",
        (
            f"{STANDING}::test_nodes_that_a_pod_does_not_change_are_not_judged_for_it",
            f"{STANDING}::test_a_rare_pod_finds_costs_that_were_renewed_before_it_came",
        ),
    ),
    Mending(
        13,
        "a pod that comes seldom does not wait for it",
        "src/nodescope/commands/extender.py",
        "        renewing.start()\n",
        "",
        (
            "tests/integration/test_extender_prepared.py::test_a_pod_in_a_large_cluster_does_not_wait_for_costs",
        ),
    ),
    Mending(
        14,
        "agents write windows to a Lease",
        "src/nodescope/publish/annotated_object.py",
        "if self._is_refused():\n            self.node.write(texts)",
        "if True:\n            self.node.write(texts)",
        (
            "tests/publish/test_lease.py::test_the_first_write_makes_the_lease_and_later_ones_patch_it",
            f"{PLACED}::test_the_policy_lets_an_agent_touch_its_own_node_and_our_keys_only",
        ),
    ),
    Mending(
        14,
        "the extender reads them there",
        f"{SCHEDULER}/nodes.py",
        "            self.nodes.tell_lease(name, item)",
        "            pass",
        (
            "tests/use/scheduler/test_leases.py::test_a_window_in_the_lease_counts_as_one_at_the_node_does",
            f"{PLACED}::test_what_agents_write_to_leases_places_pods",
        ),
    ),
    Mending(
        15,
        "an agent lists the pods of its own node",
        "src/nodescope/collect/sources/kubernetes.py",
        'query = {"fieldSelector": f"spec.nodeName={context.node}"}',
        "query: dict[str, str] = {}",
        ("tests/integration/test_kube_agent.py::test_a_container_is_named_by_the_api_server",),
    ),
    Mending(
        15,
        "an annotation has a size",
        "deploy/rbac/policy.yaml",
        "!(key in variables.after) || size(variables.after[key]) <= 8192)",
        "!(key in variables.after) || size(variables.after[key]) <= 8192000)",
        (f"{PLACED}::test_the_policy_lets_an_agent_touch_its_own_node_and_our_keys_only",),
    ),
    Mending(
        15,
        "managedFields of others stay",
        "deploy/rbac/policy.yaml",
        'request.operation != "UPDATE" || !has(oldObject.metadata.managedFields)',
        'request.operation == "UPDATE" || !has(oldObject.metadata.managedFields)',
        (f"{PLACED}::test_the_policy_lets_an_agent_touch_its_own_node_and_our_keys_only",),
    ),
    Mending(
        16,
        "NOTES promise no policy where there is none",
        f"{CHART}/NOTES.txt",
        "  kubernetes.annotate   get, patch nodes{{ if .Values.kubernetes.admissionPolicy }}"
        '{{ if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}',
        "  kubernetes.annotate   get, patch nodes{{ if .Values.kubernetes.admissionPolicy }}{{ if true }}",
        ("tests/chart/test_checks.py::test_the_notes_promise_the_policy_only_where_there_is_one",),
    ),
    Mending(
        16,
        "one replica has no budget that keeps it from being drained",
        f"{CHART}/extender.yaml",
        "{{- if gt (int .Values.extender.replicas) 1 }}\n---",
        "{{- if true }}\n---",
        (f"{RENDERED}::test_one_replica_can_be_drained",),
    ),
    Mending(
        16,
        "an empty list of peers means nobody",
        f"{CHART}/networkpolicies.yaml",
        "      app.kubernetes.io/instance: {{ .Release.Name }}\n  policyTypes: [Ingress]\n"
        "  {{- if .Values.networkPolicy.from }}",
        "      app.kubernetes.io/instance: {{ .Release.Name }}\n  policyTypes: [Ingress]\n  {{- if true }}",
        (f"{RENDERED}::test_an_empty_list_of_peers_means_nobody",),
    ),
    Mending(
        16,
        "the port of events is nobody else's",
        f"{CHART}/_helpers.tpl",
        "{{ if eq (int .) (int $.Values.fpga.port) }}",
        "{{ if false }}",
        (f"{RENDERED}::test_the_port_of_events_is_nobody_else_s",),
    ),
    Mending(
        16,
        "pods may talk to what they need, and to nobody else",
        f"{CHART}/networkpolicies.yaml",
        "{{- if .Values.networkPolicy.egress }}",
        "{{- if false }}",
        (f"{RENDERED}::test_pods_may_talk_to_what_they_need",),
    ),
    Mending(
        16,
        "a container's disk is limited",
        "deploy/chart/values.yaml",
        "  discovery: true\n  resources:\n"
        "    requests: {cpu: 20m, memory: 128Mi, ephemeral-storage: 16Mi}\n"
        '    limits: {cpu: "1", memory: 512Mi, ephemeral-storage: 128Mi}',
        "  discovery: true\n  resources:\n"
        '    requests: {cpu: 20m, memory: 128Mi}\n    limits: {cpu: "1", memory: 512Mi}',
        (f"{RENDERED}::test_every_container_s_disk_is_limited",),
    ),
)
