# SPDX-License-Identifier: Apache-2.0
"""Who may do what on a real kube-apiserver with config/default."""

import unittest

import yaml

from apiserver import CONFIG, NAMESPACE, installed, wait_until

GROUP = "flamefleet.dev"
TARGETS, POOLS, BACKENDS = (f"{plural}.{GROUP}" for plural in ("profilingtargets", "agentpools", "profilingbackends"))
KINDS = (TARGETS, POOLS, BACKENDS)
READ = ("get", "list", "watch")
VERBS = (*READ, "create", "update", "patch", "delete", "deletecollection")
BUILT_IN = {"dev": "edit", "lead": "admin", "guest": "view"}  # user -> role that is bound in namespace shop
AGENT = f"system:serviceaccount:{NAMESPACE}:flamefleet-agent"
MOST_RULES_OF_A_REASON = 3  # create, which cannot be limited by names, and what is
OPERATOR = f"system:serviceaccount:{NAMESPACE}:flamefleet-operator"


def binding(user, role, namespace=None):
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
            "metadata": {"name": user, **where}, "subjects": [{"kind": "User", "name": user}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}}


def review(user, verb, resource, namespace):
    """The question whether `user` may; `resource` is name.group/subresource."""
    main, _, subresource = resource.partition("/")
    name, _, group = main.partition(".")
    attributes = {"verb": verb, "group": group, "resource": name, "subresource": subresource, "namespace": namespace}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}}


class Access(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = installed()
        cls.server.create([*(binding(user, role, "shop") for user, role in BUILT_IN.items()), binding("sre", "flamefleet-admin")])
        # The controller that puts our parts into Kubernetes' own roles, and the authorizer that sees it, take a moment.
        ask = [(user, "list", TARGETS, "shop") for user in BUILT_IN]
        wait_until("Kubernetes' own roles have ours", lambda: len(cls.allowed(ask)) == len(ask))

    @classmethod
    def allowed(cls, questions):
        """Those of (user, verb, resource, namespace) that the API server allows."""
        questions = list(questions)
        answers = cls.server.create([review(*question) for question in questions])
        return {question for question, answer in zip(questions, answers, strict=True) if answer["status"]["allowed"]}

    def rights(self, user, namespace, resources=(*KINDS, *(f"{kind}/status" for kind in KINDS))):
        """All that `user` may do there with our kinds: resource -> verbs."""
        rights = {}
        for _, verb, resource, _ in self.allowed((user, verb, resource, namespace) for verb in VERBS for resource in resources):
            rights.setdefault(resource, set()).add(verb)
        return rights

    def test_a_team_makes_targets_in_its_namespace_and_nothing_else(self):
        for user in ("dev", "lead"):
            self.assertEqual(self.rights(user, "shop")[TARGETS], set(VERBS), user)
            for namespace in (NAMESPACE, "default", ""):
                self.assertEqual(self.rights(user, namespace), {}, (user, namespace))

    def test_who_views_sees_and_changes_nothing(self):
        self.assertEqual(self.rights("guest", "shop")[TARGETS], set(READ))
        self.assertEqual(set().union(*self.rights("guest", "shop").values()), set(READ))
        self.assertEqual(self.rights("guest", "default"), {})

    def test_admin_has_all_kinds_everywhere_and_no_status(self):
        self.assertEqual(self.rights("sre", "anywhere"), {kind: set(VERBS) for kind in KINDS})
        self.assertEqual(self.allowed([("sre", "get", "secrets", "shop"), ("sre", "create", "pods", "shop")]), set())

    def test_real_requests_end_alike(self):
        target = (CONFIG / "samples" / "profilingtarget.yaml").read_text()
        pool = (CONFIG / "samples" / "gpu_agentpool.yaml").read_text()
        for user, text, can in (("dev", target, True), ("guest", target, False), ("lead", pool, False), ("sre", pool, True),
                                ("dev", target.replace("namespace: shop", "namespace: default"), False)):
            answer = self.server.kubectl("create", "--dry-run=server", "-f", "-", f"--as={user}", stdin=text)
            self.assertEqual("is forbidden" not in answer.output, can, f"{user}: {answer.output}")
            self.assertEqual(answer.returncode == 0, can, f"{user}: {answer.output}")

    def test_only_who_is_given_the_role_reaches_the_store_and_nothing_else_by_it(self):
        self.server.create([binding("reader", "flamefleet-profile-reader", NAMESPACE)])

        def may(user, verb, name, namespace=NAMESPACE):
            return self.server.kubectl("auth", "can-i", verb, f"services/{name}", "--subresource=proxy", "-n", namespace,
                                       f"--as={user}").output.strip() == "yes"

        store = "https:flamefleet-store-default:https"
        wait_until("the authorizer sees the binding", lambda: may("reader", "get", store))
        for user in ("dev", "lead", "guest", "sre", AGENT, OPERATOR):
            self.assertFalse(may(user, "get", store), user)
        for verb, name, namespace in (("create", store, NAMESPACE), ("get", "flamefleet-operator:agents", NAMESPACE),
                                      ("get", store, "shop")):
            self.assertFalse(may("reader", verb, name, namespace), (verb, name, namespace))
        readable = [secret for secret in ("flamefleet-store-default-reader", "flamefleet-stores", "flamefleet-operator-tls")
                    if self.server.kubectl("auth", "can-i", "get", f"secrets/{secret}", "-n", NAMESPACE,
                                           "--as=reader").output.strip() == "yes"]
        self.assertEqual(readable, ["flamefleet-store-default-reader"])

    def test_agents_may_do_nothing(self):
        resources = (*KINDS, "pods", "nodes", "secrets", "configmaps", "daemonsets.apps")
        for namespace in (NAMESPACE, "shop", ""):
            self.assertEqual(self.rights(AGENT, namespace, resources), {})

    def test_operator_reaches_nothing_of_others(self):
        forbidden = [("get", "secrets"), ("list", "secrets"), ("watch", "secrets"), ("get", "configmaps"), ("create", "pods"),
                     ("delete", "pods"), ("create", "pods/exec"), ("get", "nodes/proxy"), ("create", "daemonsets.apps"),
                     ("delete", "deployments.apps"), ("create", "serviceaccounts/token"), ("impersonate", "users"),
                     ("create", "clusterrolebindings.rbac.authorization.k8s.io"), ("bind", "clusterroles.rbac.authorization.k8s.io"),
                     ("escalate", "clusterroles.rbac.authorization.k8s.io"), *[("patch", kind) for kind in KINDS],
                     *[("delete", kind) for kind in KINDS]]
        self.assertEqual(self.allowed((OPERATOR, verb, resource, "shop") for verb, resource in forbidden), set())

    def test_each_rule_of_the_operator_has_its_reason(self):
        text = (CONFIG / "rbac" / "operator_role.yaml").read_text()
        for rule in (rule for item in yaml.safe_load_all(text) for rule in item.get("rules", [])):
            self.assertNotIn("*", rule["verbs"] + rule["resources"] + rule["apiGroups"])
        unexplained = MOST_RULES_OF_A_REASON
        for line in text.splitlines():
            if line.startswith("#"):
                unexplained = 0
            if line.startswith(("---", "rules:")):
                unexplained = MOST_RULES_OF_A_REASON
            if line.startswith("- apiGroups:"):
                unexplained += 1
                self.assertLessEqual(unexplained, MOST_RULES_OF_A_REASON, f"no comment says why: {line}")
