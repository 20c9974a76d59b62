/* As much of Godot's classes as docs/export.md uses, so that its code compiles and runs without Godot. */
#pragma once
#include <vector>

#define GDCLASS(name, base)

namespace godot {
struct Vector3 { double x, y, z; };
struct Quaternion { double x, y, z, w; };

class Object {
public:
    virtual ~Object() {}
    template <class T> static T *cast_to(Object *object) { return dynamic_cast<T *>(object); }
};

class Node3D : public Object {
public:
    std::vector<Object *> children;
    Vector3 position{};
    Quaternion quaternion{};

    virtual void _physics_process(double) {}
    int get_child_count() const { return int(children.size()); }
    Object *get_child(int k) const { return children[k]; }
    void set_position(const Vector3 &to) { position = to; }
    void set_quaternion(const Quaternion &to) { quaternion = to; }
};
}
