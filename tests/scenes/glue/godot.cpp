/* Pushes the first of three bodies for ten frames, and prints where the nodes are. */
#include <cstdio>

#include "room.hpp"

int main() {
    Room room;
    godot::Node3D nodes[3];
    for (auto &node : nodes) room.children.push_back(&node);
    for (int frame = 0; frame < 10; frame++) {
        room.push(0, {1, 2, 3});
        room._physics_process(1 / 60.0);
    }
    for (auto &node : nodes) {
        auto &p = node.position;
        auto &q = node.quaternion;
        printf("%.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", p.x, p.y, p.z, q.x, q.y, q.z, q.w);
    }
}
